// What another block shares, and what can be done with it.
#[tma_kernel(threads = 32, cluster = 2)]
fn parsed(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    let all: SharedArray<u32, 4> = shared();
    let full: Barrier = shared();
    remote(full, 1).wait(0);
    remote(full, 1).init(1);
    remote(full, 1).expect_tx(1);
    remote(remote(full, 1), 1).arrive();
    let x = remote(n, 1);
    let x = remote(full, 1i32);
    let x = remote(full);
    map.load(remote(tile, 1), [0, 0], full);
    map.store([0, 0], remote(tile, 1));
    map.load(tile, [0, 0], remote(full, 1));
    let x: Remote<u32> = remote(all, 1);
}

#[tma_kernel(threads = 32, cluster = 2)]
fn checked(n: u32, out: Global<u32>, map: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    let all: SharedArray<u32, 4> = shared();
    let full: Barrier = shared();
    let x = remote(all, 1).get(4);
    let x = remote(tile, 1).get([8, 0]);
}
