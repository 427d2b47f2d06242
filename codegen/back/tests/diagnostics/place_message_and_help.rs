// A place, a message and a help.
#[tma_kernel(threads = 32)]
fn k(src: TensorMap<Tile<f16, Shape2<8, 4>>>) {
    src.prefetch_descriptor();
}
