//! Instances that are right or wrong together have one outline.

use tma_codegen::protocol::outline;

const KERNEL: &str = "
    #[tma_kernel(threads = 32, instances(
        T in [f16, bf16, f32, tf32, i8],
        N in [two = 2, three = 3],
    ))]
    fn copy<T, const N: u32>(from: TensorMap<Tile<T, Shape2<8, 16>>>) where T: TileElement {
        let tiles: Stages<Tile<T, Shape2<8, 16>>, N> = shared();
        let bar: Barrier = shared();
        if thread_idx().x == 0 {
            bar.init(1);
            fence_barrier_init();
            bar.arrive_expect_tx(tiles[0].bytes());
            from.load(tiles[0], [0, 0], bar);
        }
        sync_threads();
        bar.wait(0);
    }";

#[test]
fn what_differs_in_elements_of_one_size_is_alike() {
    let accepted = tma_codegen::check("kernels.rs", KERNEL).unwrap_or_else(|failure| panic!("{failure}"));
    let of = |name: &str| {
        let all = accepted.kernels.iter().map(|checked| checked.kernel.kernel());
        let kernel = all.into_iter().find(|kernel| kernel.instance.as_deref() == Some(name));
        outline(kernel.unwrap_or_else(|| panic!("no {name}")))
    };
    assert_eq!(of("f16_two"), of("bf16_two"));
    assert_eq!(of("f32_three"), of("tf32_three"));
    for (one, other) in [("f16_two", "f16_three"), ("f16_two", "f32_two"), ("f16_two", "i8_two")] {
        assert_ne!(of(one), of(other));
    }
}
