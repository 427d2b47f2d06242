//! Detects whether cargo builds with debug assertions, which decides whether kernels are checked
//! that do not say so themselves.
//!
//! The decision is made only here. The macro includes whatever PTX the build script left, in either
//! mode: a checked kernel has the same parameters, shared memory and launcher as an unchecked one.

use std::env;

use crate::Checks;

/// Returns the mode that the profile or `RUSTFLAGS` selects for the package of the calling build
/// script.
pub(super) fn of_this_build() -> Checks {
    // Cargo sets this variable from the profile's `debug-assertions`, which cannot be derived from
    // `PROFILE`, `DEBUG` and `OPT_LEVEL`.
    let by_profile = env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_some();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if by_flags(&flags).unwrap_or(by_profile) { Checks::On } else { Checks::Off }
}

/// Returns the setting of debug assertions in rustc's flags, if any. The last flag wins, and takes
/// precedence over the profile. Cargo separates flags by the unit separator. Source: The Cargo
/// Book, "Environment Variables"; The rustc Book, "Codegen Options".
fn by_flags(flags: &str) -> Option<bool> {
    let mut said = None;
    let mut flags = flags.split('\x1f').peekable();
    while let Some(flag) = flags.next() {
        let option = match flag {
            "-C" | "--codegen" => flags.next().unwrap_or_default(),
            _ => flag.strip_prefix("-C").or_else(|| flag.strip_prefix("--codegen=")).unwrap_or_default(),
        };
        let (name, value) = option.split_once('=').unwrap_or((option, "on"));
        if matches!(name, "debug-assertions" | "debug_assertions") {
            said = Some(matches!(value, "y" | "yes" | "on" | "true"));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_flag_counts() {
        for (flags, said) in [
            ("", None),
            ("-C\x1fopt-level=3", None),
            ("-C\x1fdebug-assertions", Some(true)),
            ("-Cdebug-assertions=off", Some(false)),
            ("--codegen=debug-assertions=yes\x1f-C\x1fdebug_assertions=no", Some(false)),
            ("-Copt-level=3\x1f-Cdebug-assertions=y\x1f--cfg\x1fdebug-assertions", Some(true)),
        ] {
            assert_eq!(by_flags(flags), said, "{flags:?}");
        }
    }
}
