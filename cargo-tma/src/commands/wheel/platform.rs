//! The platform that a library needs.
//! Source: PEP 600 (`manylinux`); ELF, `.gnu.version_r`.

use anyhow::{Context, Result, bail};
use object::elf;
use object::read::elf::{Dyn, FileHeader, SectionHeader};
use object::{Endianness, elf::FileHeader64};

/// The oldest version of glibc that has a tag.
const OLDEST: [u32; 2] = [2, 17];

/// Libraries that PEP 600 takes for granted, and that Rust links.
const EVERYWHERE: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
];
const ARM_LINKER: &str = "ld-linux-aarch64.so.1";

/// The platform of a wheel.
#[derive(Debug)]
pub(super) struct Platform {
    /// The tag in the name of the wheel, such as `manylinux_2_28_x86_64`.
    pub(super) tag: String,
    /// The same in words.
    pub(super) needs: String,
}

/// Returns the platform of a library of Linux.
///
/// # Errors
///
/// If it is none.
pub(super) fn of(library: &[u8]) -> Result<Platform> {
    let header = FileHeader64::<Endianness>::parse(library).context("wheels are made on Linux only")?;
    let endian = header.endian()?;
    let machine = match header.e_machine(endian) {
        elf::EM_X86_64 => "x86_64",
        elf::EM_AARCH64 => "aarch64",
        other => bail!("there are no wheels for the machine {other:?} of ELF"),
    };
    let sections = header.sections(endian, library)?;
    let (mut newest, mut others) = (OLDEST, vec![]);
    if let Some((mut needs, link)) = sections.gnu_verneed(endian, library)? {
        let strings = sections.strings(endian, library, link)?;
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                newest = newest.max(glibc(version.name(endian, strings)?).unwrap_or(OLDEST));
            }
        }
    }
    for section in sections.iter() {
        if let Some((entries, link)) = section.dynamic(endian, library)? {
            let strings = sections.strings(endian, library, link)?;
            for entry in entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED) {
                let name = String::from_utf8_lossy(entry.string(endian, strings)?).into_owned();
                if !EVERYWHERE.contains(&name.as_str()) && name != ARM_LINKER {
                    others.push(name);
                }
            }
        }
    }
    let [major, minor] = newest;
    Ok(if others.is_empty() {
        let tag = format!("manylinux_{major}_{minor}_{machine}");
        Platform { tag, needs: format!("Linux on {machine} with glibc {major}.{minor} or later") }
    } else {
        let others = others.join(", ");
        Platform { tag: format!("linux_{machine}"), needs: format!("Linux on {machine} with {others}") }
    })
}

/// Returns the version of a symbol's version, such as `GLIBC_2.28`.
fn glibc(version: &[u8]) -> Option<[u32; 2]> {
    let numbers = str::from_utf8(version).ok()?.strip_prefix("GLIBC_")?;
    let mut numbers = numbers.split('.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_platform() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let platform = of(&program).unwrap();
        assert!(platform.tag.starts_with("manylinux_2_"), "{platform:?}");
        assert!(of(b"no library").is_err());
    }

    #[test]
    fn versions_of_glibc_are_compared_as_numbers() {
        assert_eq!(glibc(b"GLIBC_2.2.5"), Some([2, 2]));
        assert_eq!(glibc(b"GLIBC_2.34"), Some([2, 34]));
        assert_eq!(glibc(b"GLIBC_PRIVATE"), None);
        assert_eq!(glibc(b"GCC_3.0"), None);
        assert!([2, 34] > [2, 9]);
    }
}
