//! The parameters that an entry declares.
//!
//! For each parameter, the driver copies as many bytes as the PTX declares, from wherever a launch
//! points. The arguments of a launch are therefore compared with the PTX text itself, independent
//! of the host's specification.

/// Returns the size in bytes of each parameter that `ptx` declares for `entry`, in order. An
/// element is `None` for a declaration that no kernel of this package has. The result is `None` if
/// there is no such entry.
///
/// Source: PTX ISA, "Kernel and Function Directives: .entry" and "Parameter State Space".
pub(crate) fn entry_params(ptx: &str, entry: &str) -> Option<Vec<Option<u64>>> {
    let mut tokens = Tokens { rest: ptx };
    loop {
        tokens.find(|token| *token == ".entry")?;
        if tokens.next()? == entry {
            break;
        }
    }
    if tokens.next() != Some("(") {
        return Some(vec![]);
    }
    let list: Vec<&str> = tokens.take_while(|token| *token != ")").collect();
    if list.is_empty() {
        return Some(vec![]);
    }
    Some(list.split(|token| *token == ",").map(bytes).collect())
}

/// Returns the size in bytes of one declaration, such as `.param .align 64 .b8 map[128]`.
fn bytes(declaration: &[&str]) -> Option<u64> {
    let mut rest = declaration.strip_prefix(&[".param"])?;
    let mut element = None;
    loop {
        rest = match rest {
            [".ptr" | ".const" | ".global" | ".local" | ".shared", rest @ ..] => rest,
            [".align", _, rest @ ..] => rest,
            [name, rest @ ..] if name.starts_with('.') && element.is_none() => {
                element = Some(element_bytes(name)?);
                rest
            }
            [_name] => return element,
            [_name, "[", len, "]"] => return element?.checked_mul(len.parse().ok()?),
            _ => return None,
        };
    }
}

/// Returns the size of a type in bytes. Source: PTX ISA, "Fundamental Types".
fn element_bytes(name: &str) -> Option<u64> {
    match name {
        ".b8" | ".u8" | ".s8" => Some(1),
        ".b16" | ".u16" | ".s16" | ".f16" => Some(2),
        ".b32" | ".u32" | ".s32" | ".f32" => Some(4),
        ".b64" | ".u64" | ".s64" | ".f64" => Some(8),
        _ => None,
    }
}

/// The tokens of a PTX text, without comments and strings. A dot always begins a new token.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let text = self.rest.trim_start();
            // Strings of PTX have no escapes.
            let (skipped, end) = match text.get(..2) {
                Some("//") => (2, "\n"),
                Some("/*") => (2, "*/"),
                _ if text.starts_with('"') => (1, "\""),
                _ => {
                    let first = text.chars().next()?;
                    let in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '%');
                    let len = match first {
                        '.' => 1 + text[1..].find(|c| !in_word(c)).unwrap_or(text.len() - 1),
                        _ if in_word(first) => text.find(|c| !in_word(c)).unwrap_or(text.len()),
                        _ => first.len_utf8(),
                    };
                    let (token, rest) = text.split_at(len);
                    self.rest = rest;
                    return Some(token);
                }
            };
            self.rest = text[skipped..].split_once(end).map_or("", |(_, rest)| rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(list: &str) -> Option<Vec<Option<u64>>> {
        let text = format!(".version 8.0\n.target sm_90a\n.visible .entry copy{list}\n{{ ret; }}\n");
        entry_params(&text, "copy")
    }

    #[test]
    fn each_declaration_has_its_bytes() {
        for (list, wanted) in [
            ("(.param .align 64 .b8 copy_param_0[128], .param .u64 .ptr .global .align 4 out)", [128, 8]),
            ("(\n\t.param .u64 .ptr.shared .align 16 a,\n\t.param.u32 b\n)\n.reqntid 128, 1, 1", [8, 4]),
            ("(.param .u8 a, .param .s16 b)", [1, 2]),
            ("(.param .f16 a, .param .f64 b)", [2, 8]),
            ("(.param .b16 a[3], .param .f32 b)", [6, 4]),
        ] {
            assert_eq!(params(list), Some(wanted.map(Some).to_vec()), "{list}");
        }
    }

    #[test]
    fn an_entry_may_have_none() {
        assert_eq!(params("()"), Some(vec![]));
        assert_eq!(params(""), Some(vec![]));
        // A parameter of a call within the entry.
        assert_eq!(entry_params(".entry copy { .param .b64 called; ret; }", "copy"), Some(vec![]));
    }

    #[test]
    fn unknown_types_have_no_size() {
        for declaration in [
            ".param .texref a",
            ".param .v2 .u64 a",
            ".param .u64 a[0x10]",
            ".param .u64 a[2][4]",
            ".param .b64 a[18446744073709551615]",
            ".param .u64",
            ".param a",
            ".reg .u64 a",
            "",
        ] {
            let list = format!("(.param .u32 n, {declaration})");
            assert_eq!(params(&list), Some(vec![Some(4), None]), "{declaration}");
        }
    }

    #[test]
    fn comments_strings_and_other_entries_are_skipped() {
        let text = "// .entry copy(.param .u8 a)\n/* .entry copy(.param .u8 a)\n*/ .file 1 \".entry copy(.param .u8 a)\"\n\
            .func copy(.param .u8 a) { ret; } .entry copy_2(.param .u8 a) { ret; }\n\
            .entry /* here */ copy // and\n( .param .u64 a /* , .param .u64 b */ ) { ret; }";
        assert_eq!(entry_params(text, "copy"), Some(vec![Some(8)]));
        assert_eq!(entry_params(text, "copy_2"), Some(vec![Some(1)]));
        assert_eq!(entry_params(text, "copy_"), None);
        assert_eq!(entry_params("", "copy"), None);
        assert_eq!(entry_params(".entry", "copy"), None);
        assert_eq!(entry_params("/* .entry copy()", "copy"), None);
    }
}
