// An error of some instances names them.
#[tma_kernel(threads = 32, instances(narrow = <4>, wide = <64>, widest = <128>))]
fn k<const N: u32>(out: Global<u32>) {
    out.set(0, 1 << N);
    out.set(1, totl);
}
