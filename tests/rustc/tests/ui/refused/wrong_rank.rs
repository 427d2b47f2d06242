use tma_runtime::prelude::*;

#[tma_kernel(protocol = trusted("a sketch"), threads = 32)]
pub fn wrong_rank(dst: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let tile: Tile<f32, Shape2<8, 8>> = shared();
    dst.store([0, 0], tile);
}

pub fn cube(device: &Device, dst: &mut DeviceTensor<f32, 3>) -> Result<(), Error> {
    wrong_rank::launch(device, 1, dst)
}

fn main() {}
