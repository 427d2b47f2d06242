// Each scalar has methods of its own.
#[tma_kernel(threads = 32)]
fn k() {
    (1u32).quirk();
    (1i32).quirk();
    (1.0f32).quirk();
    f16::from_f32(1.0).quirk();
    e4m3::from_f32(1.0).quirk();
    true.quirk();
    (1.0f32).powi(2);
    f32::powi(1.0, 2);
    f32::exp(1.0);
}
