//! A text that is equal for instances of a kernel whose protocols are right or wrong together.

use tma_front::ir::Kernel;

/// Element types of the same size, whose values are not followed, and the name that both get here.
const ALIKE: [(&str, &str); 3] = [("bf16", "f16"), ("tf32", "f32"), ("e5m2", "e4m3")];

/// Returns the text of a kernel instance, without its name and without anything that the checker
/// does not look at. Instances with the same outline are right or wrong together. Often they differ
/// only in their element type, and a check takes many times as long as producing the text.
pub fn outline(kernel: &Kernel) -> String {
    let text = kernel.to_string();
    let name = format!("kernel {}", kernel.path());
    let mut text = text.strip_prefix(&name).unwrap_or(&text).to_owned();
    for (one, other) in ALIKE {
        text = text.replace(one, other);
    }
    text
}
