//! Whether cargo builds with debug assertions, which decides what kernels are checked that do not
//! say it themselves.
//!
//! This is the one place that decides. The macro includes whatever PTX the build script left, and
//! asks for no mode: a checked kernel has the parameters, the shared memory and the launcher of an
//! unchecked one.

use std::env;

use crate::Checks;

/// As the profile, or `RUSTFLAGS`, says for the package whose build script calls it.
pub(super) fn of_this_build() -> Checks {
    // Cargo sets it by the profile's `debug-assertions`, which `PROFILE`, `DEBUG` and `OPT_LEVEL`
    // do not tell.
    let by_profile = env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_some();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if by_flags(&flags).unwrap_or(by_profile) { Checks::On } else { Checks::Off }
}

/// What rustc's flags say of debug assertions, the last of them, which rustc puts above the
/// profile. Cargo parts them by the unit separator. Source: The Cargo Book, "Environment
/// Variables"; The rustc Book, "Codegen Options".
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
