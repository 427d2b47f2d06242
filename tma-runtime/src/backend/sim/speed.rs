//! A hint for programs whose simulator is slow because cargo compiles dependencies without
//! optimisation.

use std::io::{Write, stderr};
use std::sync::Once;

/// The environment variable that silences the hint if set to `off`.
const VARIABLE: &str = "TMA_HINTS";

const HINT: &str = "\
hint: the simulator was compiled without optimisation, and is about twelve times slower than it could be. To
      optimise it and the kernel compiler in debug builds too, add these lines to the workspace's Cargo.toml
      (set `TMA_HINTS=off` to silence this hint):

      [profile.dev.package.ptx-sim]
      opt-level = 3
      debug = \"line-tables-only\"
      [profile.dev.package.tma-model]
      opt-level = 3
      [profile.dev.package.tma-front]
      opt-level = 1
      [profile.dev.package.tma-protocol]
      opt-level = 1
      [profile.dev.package.tma-codegen]
      opt-level = 1
";

/// Writes the hint to standard error at the first launch of a process, if the simulator is compiled
/// without optimisation.
pub(super) fn warn_if_slow() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        if let Some(hint) = hint(ptx_sim::IS_OPTIMIZED, std::env::var(VARIABLE).ok().as_deref()) {
            // Unlike `eprint!`, this does not panic if standard error is closed.
            stderr().write_all(hint.as_bytes()).ok();
        }
    });
}

fn hint(is_optimized: bool, setting: Option<&str>) -> Option<&'static str> {
    (!is_optimized && setting != Some("off")).then_some(HINT)
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn an_unoptimised_simulator_is_hinted_at_unless_that_is_silenced() {
        assert!(hint(false, None).is_some_and(|hint| hint.contains("\n      opt-level = 3\n")));
        assert!(hint(false, Some("on")).is_some());
        assert_eq!(hint(false, Some("off")), None);
        assert_eq!(hint(true, None), None);
    }

    #[test]
    fn this_repository_optimises_it() {
        let hint = hint(ptx_sim::IS_OPTIMIZED, None);
        assert_eq!(hint, None, "the workspace's Cargo.toml has the lines of the hint");
    }
}
