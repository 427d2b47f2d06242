//! Registers of warpgroups against those of the block.

use super::super::{ir, refused};

fn kernel(options: &str, body: &str) -> String {
    format!("#[tma_kernel({options})]\nfn k(n: u32) {{ {body} }}")
}

/// Returns a kernel of one warpgroup with fewer registers and others with more.
fn roles(options: &str, fewer: u32, more: u32) -> String {
    let body = format!(
        "if warpgroup_idx() == 0 {{ setmaxnreg_dec::<{fewer}>(); }} else {{ setmaxnreg_inc::<{more}>(); }}"
    );
    kernel(options, &body)
}

#[test]
fn tma0265_all_warpgroups_together() {
    // Source of the sums that fit: CUTLASS, ThunderKittens, DeepGEMM and fast.cu use them.
    for (options, broken, message, kept) in [
        ("threads = 384", (48, 232), "48 + 2 × 232 = 512 registers, but start with 3 × 168 = 504", (40, 232)),
        ("threads = 384", (32, 240), "32 + 2 × 240 = 512 registers", (24, 240)),
        ("threads = 512", (40, 160), "40 + 3 × 160 = 520 registers, but start with 4 × 128 = 512", (32, 160)),
        ("threads = 384, max_registers = 160", (24, 232), "but start with 3 × 160 = 480", (24, 224)),
        ("threads = 256, min_blocks = 2", (40, 224), "but start with 2 × 128 = 256", (40, 216)),
    ] {
        let text = refused(&roles(options, broken.0, broken.1));
        assert_eq!(text.matches("TMA0").count(), 1, "{text}");
        assert!(text.starts_with("TMA0265") && text.contains(message), "{text}");
        ir(&roles(options, kept.0, kept.1));
    }
    let text = refused(&roles("threads = 384", 40, 240));
    assert!(text.contains("note: each thread of this warpgroup keeps 40: line 2"), "{text}");
    assert!(text.contains("help: request 232 here"), "{text}");
}

#[test]
fn tma0265_roles_of_any_form() {
    for (broken, kept) in [
        (
            "match warpgroup_idx() { 0 => setmaxnreg_dec::<40>(), 1 => setmaxnreg_inc::<240>(), _ => setmaxnreg_inc::<232>() }",
            "match warpgroup_idx() { 0 => setmaxnreg_dec::<24>(), 1 => setmaxnreg_inc::<240>(), _ => setmaxnreg_inc::<232>() }",
        ),
        (
            "if warpgroup_idx() == 0 { setmaxnreg_dec::<40>(); return; } setmaxnreg_inc::<240>();",
            "if warpgroup_idx() == 0 { setmaxnreg_dec::<40>(); return; } setmaxnreg_inc::<232>();",
        ),
        (
            "let me = warpgroup_idx(); let copies = me == 2; if !copies { setmaxnreg_inc::<240>(); }",
            "let me = warpgroup_idx(); let copies = me == 2; if copies { setmaxnreg_dec::<24>(); } else { setmaxnreg_inc::<240>(); }",
        ),
        // A warpgroup that releases nothing keeps its registers.
        (
            "if warpgroup_idx() == 1 { setmaxnreg_inc::<232>(); }",
            "if warpgroup_idx() == 1 { setmaxnreg_inc::<168>(); }",
        ),
    ] {
        let text = refused(&kernel("threads = 384", broken));
        assert!(text.starts_with("TMA0265") && text.contains("wait forever"), "{broken}: {text}");
        ir(&kernel("threads = 384", kept));
    }
    ir(&roles("threads = 256", 24, 256));
    // The compiler does not know whether they ever do.
    ir(&kernel("threads = 384", "if n == 3 { setmaxnreg_inc::<240>(); }"));
    ir(&kernel("threads = 384", "for _ in 0..n { setmaxnreg_inc::<240>(); }"));
    let either = "if warpgroup_idx() == 0 { if n == 3 { return; } else { setmaxnreg_dec::<40>(); } } \
                  else { setmaxnreg_inc::<232>(); }";
    ir(&kernel("threads = 384", either));
    // Facts about one branch do not hold in the other.
    let other = "let mut more = false; if n == 3 { more = true; } else if more { setmaxnreg_inc::<240>(); }";
    ir(&kernel("threads = 384", other));
}

#[test]
fn tma0265_changes_in_their_directions() {
    for (broken, message, kept) in [
        (
            "setmaxnreg_dec::<176>();",
            "cannot increase the registers of a thread, which has 168",
            "setmaxnreg_dec::<168>();",
        ),
        (
            "setmaxnreg_dec::<40>(); setmaxnreg_dec::<48>();",
            "cannot increase the registers of a thread, which has 40",
            "setmaxnreg_dec::<48>(); setmaxnreg_dec::<40>();",
        ),
        (
            "setmaxnreg_dec::<40>(); setmaxnreg_inc::<32>();",
            "`setmaxnreg_dec::<40>` cannot increase the registers of a thread, which has 32",
            "setmaxnreg_dec::<40>(); setmaxnreg_inc::<48>(); setmaxnreg_dec::<24>();",
        ),
    ] {
        let text = refused(&kernel("threads = 384", broken));
        assert!(text.starts_with("TMA0265") && text.contains(message), "{broken}: {text}");
        ir(&kernel("threads = 384", kept));
    }
    let text = refused(&kernel("threads = 128, max_registers = 128", "setmaxnreg_inc::<120>();"));
    assert!(
        text.contains("`setmaxnreg_inc::<120>` cannot decrease the registers of a thread, which has 128"),
        "{text}"
    );
    ir(&kernel("threads = 128, max_registers = 128", "setmaxnreg_inc::<128>();"));
}
