//! Instances as products of lists: their values, order and names.

use super::{ir, refused};

/// Returns the names and values of the instances of a kernel that is generic over `T`, `M` and `N`.
#[track_caller]
fn instances(lists: &str) -> Vec<String> {
    let text = ir(&format!(
        "#[tma_module] mod m {{
         const COUNT: u32 = 3;
         #[tma_kernel(threads = 32, instances({lists}))]
         fn k<T: TileElement, const M: u32, const N: i32>(src: TensorMap<Tile<T, Shape1<32>>>, out: Global<i32>) {{
             out.set(M, N);
         }} }}"
    ));
    let kernels = text.split("kernel k::").skip(1).map(|kernel| {
        let (name, rest) = kernel.split_once(' ').expect("a name");
        let (_, rest) = rest.split_once("Tile<").expect("a tile");
        let (element, rest) = rest.split_once(',').expect("its element");
        let (_, rest) = rest.split_once("global.set p1 ").expect("a store");
        format!("{name}: {element} {}", rest.trim())
    });
    kernels.collect()
}

/// Only rustc interprets the bounds.
#[test]
fn bounds_of_any_form_are_taken() {
    let text = ir("#[tma_kernel(threads = 128, instances(T in [f16, bf16], N in [64]))]
         fn k<T, const N: u32>(out: TensorMap<Tile<T, Shape2<64, N>>>)
         where
             T: Multiply<T, f32>,
             f32: StoreAs<T>,
             Shape2<64, N>: MatrixShape<64, 64>,
         {
             let tile: Tile<T, Shape2<64, N>> = shared();
             let sum = Accumulator::<f32, 64, 64>::zero();
             sum.store(tile);
             out.store([0, 0], tile);
         }");
    assert!(text.contains("kernel k::f16_64") && text.contains("kernel k::bf16_64"), "{text}");
}

#[test]
fn a_product_makes_each_combination() {
    assert_eq!(
        instances("T in [f16, bf16], M in [1, 2], N in [7]"),
        [
            "f16_1_7: f16 1u32 7i32",
            "f16_2_7: f16 2u32 7i32",
            "bf16_1_7: bf16 1u32 7i32",
            "bf16_2_7: bf16 2u32 7i32"
        ]
    );
}

#[test]
fn names_and_order_are_those_of_the_lists() {
    assert_eq!(
        instances("N in [up = 1, down = -1], T in [u8], M in [4, 5]"),
        [
            "up_u8_4: u8 4u32 1i32",
            "up_u8_5: u8 5u32 1i32",
            "down_u8_4: u8 4u32 -1i32",
            "down_u8_5: u8 5u32 -1i32"
        ]
    );
}

#[test]
fn generics_may_change_together() {
    assert_eq!(
        instances("(M, N) in [(1, 2), large = (64, 128)], T in [u8]"),
        ["m_1_2_u8: u8 1u32 2i32", "large_u8: u8 64u32 128i32"]
    );
}

#[test]
fn products_and_named_instances_keep_their_order() {
    assert_eq!(
        instances(
            "a = <u8, 1, 1>, T in [u16], b = <u8, 2, 2>, M in [3], N in [3]; T in [u32], M in [4], N in [4]; c = <u8, 5, 5>,"
        ),
        [
            "a: u8 1u32 1i32",
            "u16_3_3: u16 3u32 3i32",
            "b: u8 2u32 2i32",
            "u32_4_4: u32 4u32 4i32",
            "c: u8 5u32 5i32"
        ]
    );
}

#[test]
fn a_value_is_named_by_what_it_is() {
    assert_eq!(
        instances(
            "M in [COUNT, 0x1_0u32, one_more = { COUNT + 1 }], T in [tma_runtime::lang::f16], N in [-5]"
        ),
        [
            "count_f16_minus_5: f16 3u32 -5i32",
            "m_16_f16_minus_5: f16 16u32 -5i32",
            "one_more_f16_minus_5: f16 4u32 -5i32"
        ]
    );
    let text = ir("#[tma_kernel(threads = 32, instances(ON in [true, false]; ON in [r#loop = true]))]
         fn k<const ON: bool>(out: Global<u32>) { out.set(0, ON as u32); }");
    for name in ["k::on_true ", "k::on_false ", "k::on_loop "] {
        assert!(text.contains(name), "{name}\n{text}");
    }
    let text =
        ir("#[tma_kernel(threads = 32, instances(W in [NoSwizzle, Swizzle128], S in [Shape2<8, 16>]))]
         fn k<W: Swizzle, S: Shape>(src: TensorMap<Tile<f32, S, W>>) { src.prefetch_descriptor(); }");
    for name in ["k::no_swizzle_shape2_8_16 ", "k::swizzle128_shape2_8_16 "] {
        assert!(text.contains(name), "{name}\n{text}");
    }
}

/// Names that differ in each list may be equal once they are joined.
#[test]
fn no_two_instances_have_one_name() {
    let errors = refused(
        "#[tma_kernel(threads = 32, instances(A in [x = 1, x_y = 2], B in [y_z = 1, z = 2]))]
         fn k<const A: u32, const B: u32>(out: Global<u32>) { out.set(A, B); }",
    );
    assert_eq!(errors, "TMA0010: two instances are named `x_y_z`\nhelp: rename one of them\n");
    let errors = refused(
        "#[tma_kernel(threads = 32, instances(A in [4], a_4 = <8>))]
         fn k<const A: u32>(out: Global<u32>) { out.set(0, A); }",
    );
    assert_eq!(errors, "TMA0010: two instances are named `a_4`\nhelp: rename one of them\n");
}

/// A product that would take too long is refused before it is expanded.
#[test]
fn a_product_is_counted_before_it_is_made() {
    let (mut lists, mut generics) = (String::new(), String::new());
    for i in 0..40 {
        lists += &format!("G{i} in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ");
        generics += &format!("const G{i}: u32, ");
    }
    let errors = refused(&format!(
        "#[tma_kernel(threads = 32, instances({lists}))] fn k<{generics}>(out: Global<u32>) {{ out.set(0, G0); }}"
    ));
    assert!(errors.contains("TMA0010: the products make 18446744073709551615 instances"), "{errors}");

    let products = |n: u32| {
        let list: Vec<_> = (0..n).map(|i| i.to_string()).collect();
        format!(
            "#[tma_kernel(threads = 32, instances(N in [{}]; named = <7>; N in [last = 1]))]
             fn k<const N: u32>(out: Global<u32>) {{ out.set(0, N); }}",
            list.join(", ")
        )
    };
    assert_eq!(ir(&products(255)).matches("kernel k::").count(), 257);
    let errors = refused(&products(256));
    assert!(
        errors
            .starts_with("TMA0010: the products make 257 instances up to here, but at most 256 are allowed"),
        "{errors}"
    );
}

#[test]
fn an_error_in_a_value_stands_once_and_names_its_instances() {
    let errors = refused(
        "#[tma_kernel(threads = 32, instances(T in [u32, f32], N in [1, 300]))]
         fn k<T: TileElement, const N: u32>(src: TensorMap<Tile<T, Shape2<N, 32>>>) { src.prefetch_descriptor(); }",
    );
    assert_eq!(errors.matches("TMA0201").count(), 1, "{errors}");
    assert!(errors.contains("(in the instances `u32_300`, `f32_300`)"), "{errors}");
}

#[test]
fn what_is_no_list_is_malformed() {
    for (lists, message) in [
        ("N in 4", "expected square brackets"),
        ("N in [4] M", "expected `,`"),
        ("N = 4", "expected `<`"),
        ("(N in [4])", "expected identifier"),
    ] {
        let errors = refused(&format!(
            "#[tma_kernel(threads = 32, instances({lists}))] fn k<const N: u32>(out: Global<u32>) {{ out.set(0, N); }}"
        ));
        assert!(errors.starts_with(&format!("TMA0006: malformed attribute: {message}")), "{lists}: {errors}");
    }
}

#[test]
fn constants_are_computed_from_those_of_an_instance() {
    assert_eq!(
        instances("M in [2, 4], let N = 3 * M as i32 - 1, T in [u8]"),
        ["m_2_u8: u8 2u32 5i32", "m_4_u8: u8 4u32 11i32"]
    );
}

/// A `let` is in force for every product, wherever it stands.
#[test]
fn all_products_have_the_computed_constants() {
    assert_eq!(
        instances(
            "T in [u8], N in [1]; let M = COUNT + N as u32; T in [f16], N in [2, 3]; half = <f16, 8, 9>"
        ),
        ["u8_1: u8 4u32 1i32", "f16_2: f16 5u32 2i32", "f16_3: f16 6u32 3i32", "half: f16 8u32 9i32"]
    );
}

/// Returns the instances of a kernel that is generic over three constants.
#[track_caller]
fn of_three(lists: &str) -> String {
    ir(&format!(
        "#[tma_kernel(threads = 32, instances({lists}))]
         fn k<const A: u32, const B: u32, const C: u32>(out: Global<u32>) {{ out.set(A, B + C); }}"
    ))
}

#[test]
fn a_computed_constant_may_use_those_before_it() {
    let text = of_three("A in [4], let C = A * 2, let B = C + A");
    assert!(text.contains("global.set p0 4u32 20u32"), "{text}");
}

/// Nothing else depends on a type.
#[test]
fn a_computed_constant_may_depend_on_the_size_of_a_type() {
    for (ty, bytes) in [("u8", 1), ("e4m3", 1), ("bf16", 2), ("tf32", 4), ("f32", 4), ("f64", 8)] {
        let lists = format!("T in [{ty}], let M = 16 / size_of::<T>() as u32, N in [0]");
        assert_eq!(instances(&lists), [format!("{ty}_0: {ty} {}u32 0i32", 16 / bytes)]);
    }
}

/// Each of these mistakes has its own message.
#[test]
fn computed_constants_are_judged() {
    let refused = |lists: &str| {
        refused(&format!(
            "#[tma_kernel(threads = 32, instances({lists}))]
             fn k<T: TileElement, const A: u32, const B: u32>(src: TensorMap<Tile<T, Shape1<A>>>, out: Global<u32>) {{
                 out.set(0, A + B);
             }}"
        ))
    };
    for (lists, message) in [
        ("T in [u8], A in [1], let B = A, let C = 1", "TMA0010: `k` has no generic parameter `C`"),
        ("A in [1], B in [1], let T = 4", "TMA0010: `T` is a type: only constants are computed"),
        ("T in [u8], A in [1], B in [2], let B = A", "TMA0010: `B` is bound more than once"),
        ("T in [u8], let A = B, let B = 4", "TMA0010: `A` is computed from `B`, which is computed later"),
        ("T in [u8], A in [1], let B = B + 1", "TMA0010: `B` is computed from itself"),
        ("T in [u8], A in [1]", "TMA0010: the product has no list for `B`"),
        ("T in [u8], A in [16], let B = A / (A - 16)", "TMA0111"),
    ] {
        let errors = refused(lists);
        assert!(errors.starts_with(message), "{lists}: {errors}");
    }
}
#[test]
fn computed_constants_may_choose() {
    assert_eq!(
        instances("T in [u8], M in [1, 2, 64], let N = if M > 1 && M % 4 != 0 { 7 } else { -7 }"),
        ["u8_1: u8 1u32 -7i32", "u8_2: u8 2u32 7i32", "u8_64: u8 64u32 -7i32"]
    );
}
