//! Device functions that are generic over types and constants.

use super::{ir, module, refused};

const ITEMS: &str = "use tma_runtime::prelude::*;
     type Rows = Shape2<8, 8>;
     #[tma_device] fn twice<T: Number>(x: T) -> T { x + x }
     #[tma_device] fn plain(x: u32) -> u32 { x + x }
     #[tma_device] fn plain_float(x: f64) -> f64 { x + x }
     #[tma_device] fn set<T: Number>(x: &mut T, to: T) { *x = to; }
     #[tma_device] fn set_plain(x: &mut u32, to: u32) { *x = to; }
     #[tma_device] fn last<T: Number, const N: usize>(xs: [T; N]) -> T { xs[N - 1] }
     #[tma_device] fn last_plain(xs: [u32; 3]) -> u32 { xs[2] }
     #[tma_device] fn first<T: TileElement, S: Shape, W: Swizzle>(tile: Tile<T, S, W>) -> Tile<T, S, W> { tile }
     #[tma_device] fn bytes<T, const M: u32, const N: u32>(tile: Tile<T, Shape2<M, N>, Swizzle128>, add: T) -> u32
         where T: TileElement { tile.bytes() + M * N }
     #[tma_device] fn swapped<A: Copy, B: Copy>(pair: (A, B)) -> (B, A) { (pair.1, pair.0) }";

#[track_caller]
fn same(with: &str, without: &str) {
    let text = |body| {
        let text = module(ITEMS, body);
        let declared =
            |line: &&str| ["  param ", "  shared ", "  local "].iter().any(|word| line.starts_with(word));
        let lines = text.lines().skip(1).filter(|line| !declared(line));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(text(with), text(without));
}

/// A call with types is a call of the function for these types.
#[test]
fn types_are_written_or_inferred() {
    same("out.set(0, twice::<u32>(n));", "out.set(0, plain(n));");
    same("out.set(0, twice(n));", "out.set(0, plain(n));");
    same("out.set(0, twice::<_>(n));", "out.set(0, plain(n));");
    same("let x = twice(2.0); let y: f64 = x;", "let x = plain_float(2.0); let y: f64 = x;");
    same("let x = 7; out.set(0, twice(x));", "let x = 7; out.set(0, plain(x));");
    same("let mut x = n; set(&mut x, 1);", "let mut x = n; set_plain(&mut x, 1);");
    same("out.set(0, last([n, 2, 3]));", "out.set(0, last_plain([n, 2, 3]));");
    same("out.set(0, last::<u32, 3>([n, 2, 3]));", "out.set(0, last_plain([n, 2, 3]));");
    same("out.set(0, last::<_, 3>([n, 2, 3]));", "out.set(0, last_plain([n, 2, 3]));");
}

/// A generic, or an alias, may stand for the tuple of a stage's tiles.
#[test]
fn tuples_of_tiles_are_generics() {
    const RINGS: &str = "use tma_runtime::prelude::*;
         type Both = (Tile<f32, Shape2<8, 8>>, Tile<f16, Shape2<8, 8>>);
         #[tma_device] fn skip<T: Tiles, const STAGES: u32>(c: &mut Consumer<T, STAGES>) { release(c.wait()) }
         #[tma_device] fn release<T: Tiles>(slot: FullSlot<T>) { slot.release() }
         #[tma_device] fn skip_both(c: &mut Consumer<(Tile<f32, Shape2<8, 8>>, Tile<f16, Shape2<8, 8>>), 2>) {
             release_both(c.wait())
         }
         #[tma_device] fn release_both(slot: FullSlot<Both>) { slot.release() }";
    let text = |call: &str| {
        module(RINGS, &format!("let ring: Pipeline<Both, 2> = shared(); let mut c = ring.consumer(); {call}"))
    };
    assert_eq!(text("skip(&mut c);"), text("skip_both(&mut c);"));
    assert_eq!(text("skip::<Both, 2>(&mut c);"), text("skip_both(&mut c);"));
}

/// Parts of the type of a tile are types as well, and its extents constants.
#[test]
fn tiles_determine_generics() {
    let call = |generics: &str| {
        let text = module(
            ITEMS,
            &format!(
                "let tile: Tile<f16, Shape2<8, 64>, Swizzle128> = shared(); \
                 let plain: Tile<f32, Rows> = shared(); \
                 map.load(first(plain), [0, 0], {{ let b: Barrier = shared(); b }}); \
                 out.set(0, bytes{generics}(tile, f16::from_f32(1.0)));"
            ),
        );
        assert!(text.contains("(1024u32 + 512u32)") || text.contains("1536u32"), "{text}");
    };
    call("");
    call("::<f16, 8, 64>");
    call("::<_, _, 64>");
}

#[test]
fn values_of_any_type_are_passed_on() {
    let text = module(ITEMS, "let (a, b) = swapped((n, 1.0f32)); out.set(b, cast::<u32>(a));");
    assert!(text.contains("global.set p1 p0 1u32"), "{text}");
    let text = ir("#[tma_module] mod m { use tma_runtime::prelude::*;
         #[tma_device] fn sum<T: Number, const N: u32>(x: T, y: T) -> T { let mut s = x; for _ in 0..N { s += y; } s }
         #[tma_kernel(threads = 32, instances(ints = <u32, 2>, floats = <f32, 3>))]
         fn k<T: Number + Element, const N: u32>(x: T, out: Global<T>) { out.set(0, sum::<T, N>(x, x)); out.set(1, sum::<_, 5>(x, x)); } }");
    assert!(text.contains("k::ints") && text.contains("k::floats"), "{text}");
    assert!(
        text.contains("0u32..2u32") && text.contains("0u32..3u32") && text.contains("0u32..5u32"),
        "{text}"
    );
}

/// Methods may be generic; so may functions that kernels of several types call.
#[test]
fn methods_and_operands_are_generic() {
    let items = "use tma_runtime::prelude::*;
         #[derive(Clone, Copy)] struct P { x: u32 }
         #[tma_device] impl P {
             fn times<T: Number, const N: u32>(&self, by: T) -> T { cast::<T>(self.x * N) * by }
             fn of<T: Number>(x: T) -> Self { Self { x: cast::<u32>(x) } }
         }";
    let text =
        module(items, "let p = P::of(2.5f32); let y = p.times::<f32, 3>(0.5); out.set(0, P::of::<_>(y).x);");
    assert!(text.contains("f32"), "{text}");
    let text = ir("#[tma_module] mod m { use tma_runtime::prelude::*;
         type A = Tile<bf16, Shape2<64, 64>, Swizzle128>;
         #[tma_device] fn multiply<L: Left<64, 64>, R: Right<64, 64>>(sum: &mut Accumulator<f32, 64, 64>, a: L, b: R) { sum.mma(a, b, ()).wait(); }
         #[tma_kernel(threads = 128, protocol = trusted(\"a sketch\"))] fn k(out: Global<f32>) {
             let a: A = shared(); let b: A = shared();
             let mut sum = Accumulator::<f32, 64, 64>::zero();
             multiply(&mut sum, a, b.t());
         } }");
    assert!(text.contains("mma"), "{text}");
}

#[track_caller]
fn refuses(body: &str, message: &str) {
    let errors = refused(&format!(
        "#[tma_module] mod m {{ {ITEMS} #[tma_device] fn none<T: Number>() {{}} #[tma_device] fn count<const N: u32>() -> u32 {{ N }} #[tma_device] fn shape<S: Shape>() {{ let x: S = 1; }} struct Host; #[tma_kernel(threads = 32)] fn k(n: u32, out: Global<u32>) {{ {body} }} }}"
    ));
    assert!(errors.contains(message), "{errors}");
    assert_eq!(errors.matches("TMA").count(), 1, "{errors}");
}

#[test]
fn generics_must_be_known() {
    refuses("none();", "cannot infer `T` of `none`");
    refuses("none::<_>();", "cannot infer `T` of `none`");
    refuses("out.set(0, count());", "cannot infer `N` of `count`");
    refuses("out.set(0, count::<_>());", "cannot infer `N` of `count`");
    refuses("out.set(0, twice::<u32, 2>(n));", "`twice` takes 1 generic argument, but 2 were supplied");
    refuses("out.set(0, twice::<2>(n));", "expected a type");
    refuses("out.set(0, twice::<Host>(n));", "`Host`");
    refuses("out.set(0, count::<u32>());", "`u32`");
    refuses("let y = twice::<f32>(n);", "expected `f32`, found `u32`");
    refuses("let mut x = n; set(&mut x, 1.0);", "expected `u32`, found a float");
    refuses("shape::<Shape1<8>>();", "`S`");
    refuses("out.set(0, last::<u32, 4>([n, n]));", "expected `[u32; 4]`, found `[u32; 2]`");
}
