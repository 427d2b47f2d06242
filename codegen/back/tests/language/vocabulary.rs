//! Every word of the vocabulary, and the statement or value that it becomes.

use super::means;

#[test]
fn places() {
    means(
        "let a = thread_idx().x + thread_idx().y + block_idx().z + grid_dim().x + block_dim().x;",
        "v0 = ((((thread_idx.x + thread_idx.y) + block_idx.z) + grid_dim.x) + 64u32)",
    );
    means(
        "let a = warp_idx() + lane_idx() + warpgroup_idx();",
        "v0 = ((warp_idx + lane_idx) + warpgroup_idx)",
    );
    means("if elect_one() {}", "v0 = elect_one\nif v0");
}

#[test]
fn barriers() {
    means(
        "let b: Barrier = shared(); b.init(1); b.arrive(); b.arrive_expect_tx(64); b.expect_tx(32); b.wait(n & 1); \
         while !b.try_wait(0) {} b.invalidate();",
        "barrier.init s0 1u32\nbarrier.arrive s0\nbarrier.arrive_expect_tx s0 64u32\nbarrier.expect_tx s0 32u32\n\
         barrier.wait s0 (p0 & 1u32)\nl0: while\n    v0 = barrier.try_wait s0 0u32\n  (!v0) do\nbarrier.invalidate s0",
    );
}

#[test]
fn arrivals_of_every_kind() {
    means(
        "let b: Barrier = shared(); b.arrive_many(n); let token = b.arrive_token(); b.wait_token(token); b.arrive_drop(); \
         let a = b.test_wait(1) || n == 0 || b.try_wait_for(n & 1, 1000);",
        "barrier.arrive s0 p0\nv0 = barrier.arrive s0\nv1 = v0\nbarrier.wait_token s0 v1\nbarrier.arrive_drop s0\n\
         v2 = barrier.test_wait s0 1u32\nv4 = (v2 | (p0 == 0u32))\nif v4\nelse\n  v3 = barrier.try_wait s0 (p0 & 1u32) for 1000u32\n  v4 = v3\nv5 = v4",
    );
}

#[test]
fn copies() {
    means(
        "let t: Tile<f32, Shape2<8, 8>> = shared(); let b: Barrier = shared(); let at = [n, 8]; map.prefetch_descriptor(); \
         map.load(t, at, b); map.store([-0, 8], t); bulk_commit_group(); bulk_wait_group::<1>(); bulk_wait_group_read::<0>();",
        "v0 = [p0, 8u32]\ntma.prefetch_descriptor p2\ntma.load p2 [v0[0usize], v0[1usize]] s0 s1\n\
         tma.store p2 [0i32, 8i32] s0\nbulk.commit_group\nbulk.wait_group 1\nbulk.wait_group.read 0",
    );
}

#[test]
fn reductions() {
    means(
        "let t: Tile<f32, Shape2<8, 8>> = shared(); map.reduce_add([n, 8], t); map.prefetch([8, n * 4]);",
        "tma.reduce_add p2 [p0, 8u32] s0\ntma.prefetch p2 [8u32, (p0 * 4u32)]",
    );
}

#[test]
fn cache_policies() {
    means(
        "let t: Tile<f32, Shape2<8, 8>> = shared(); let b: Barrier = shared(); let keep = l2_evict_last(x); \
         let kept = map.hint(keep); kept.load(t, [n, 0], b); kept.store([0, 0], t); kept.reduce_add([0, 0], t); \
         map.hint(l2_evict_first(0.25)).prefetch([n, 0]); map.store([0, 0], t);",
        "v0 = l2_evict_last(p3)\nv1 = v0\ntma.load p2 [p0, 0u32] s0 s1 hint v1\ntma.store p2 [0i32, 0i32] s0 hint v1\n\
         tma.reduce_add p2 [0i32, 0i32] s0 hint v1\nv2 = l2_evict_first(0.25f32)\n\
         tma.prefetch p2 [p0, 0u32] hint v2\ntma.store p2 [0i32, 0i32] s0",
    );
    means(
        "let mut p = l2_evict_normal(1.0); let m = map.hint(p); p = l2_evict_unchanged(1.0); m.prefetch([0, 0]);",
        "v0 = l2_evict_normal(1.0f32)\nv1 = v0\nv0 = l2_evict_unchanged(1.0f32)\ntma.prefetch p2 [0i32, 0i32] hint v1",
    );
}

#[test]
fn shared_memory() {
    means(
        "let t: Tile<f32, Shape2<8, 16>> = shared(); t.set([n, 3], t.get([1, n])); out.set(t.bytes(), t.rows() + t.cols());",
        "v0 = tile.get s0 [1u32, p0]\ntile.set s0 [p0, 3u32] v0\nglobal.set p1 512u32 24u32",
    );
    means(
        "let a = shared::<SharedArray<f32, 4>>(); a.set(n, a.get(3) + x); out.set(0, a.len());",
        "v0 = shared.get s0 3u32\nshared.set s0 p0 (v0 + p3)\nglobal.set p1 0i32 4u32",
    );
    means(
        "let s: Stages<Stages<SharedArray<u32, 4>, 2>, 3> = shared(); s[n][1].set(0, s.len() + s[0].len() + s[0][0].len());",
        "shared.set s0[p0][1u32] 0u32 9u32",
    );
}

#[test]
fn global_memory() {
    means(
        "out.set(out.len() - 1, out.get(n as usize) + out.get(n as u64));",
        "v0 = global.get p1 (p0 as usize)\nv1 = global.get p1 (p0 as u64)\nglobal.set p1 (len(p1) - 1u64) (v0 + v1)",
    );
}

#[test]
fn atomics() {
    means(
        "let old = out.atomic_add(n, 1) + out.atomic_max(3, n);",
        "v0 = global.add.relaxed.gpu p1 p0 1u32\nv1 = global.max.relaxed.gpu p1 3i32 p0\nv2 = (v0 + v1)",
    );
}

#[test]
fn ordering() {
    means(
        "sync_threads(); sync_warp(); named_barrier_sync(1, 64); fence_proxy_async(); fence_proxy_async_global(); fence(); fence_barrier_init();",
        "sync.threads\nsync.warp\nsync.named 1u32 64u32\nfence.proxy_async\nfence.proxy_async_global\nfence.device\n\
         fence.barrier_init",
    );
}

#[test]
fn functions_of_numbers() {
    means(
        "let a = min(n, 3) + max(n, 4) + n.min(5).max(6); let b = abs(n as i32) - (n as i32).abs();",
        "v0 = ((min(p0, 3u32) + max(p0, 4u32)) + max(min(p0, 5u32), 6u32))\nv1 = (abs((p0 as i32)) - abs((p0 as i32)))",
    );
    means(
        "let a = fma(x, 2.0, x) + x.mul_add(x, 1.0); let b = sqrt(x) + x.sqrt() + recip(x) + x.recip();",
        "v0 = (fma(p3, 2.0f32, p3) + fma(p3, p3, 1.0f32))\nv1 = (((sqrt(p3) + sqrt(p3)) + recip(p3)) + recip(p3))",
    );
    means("let a = rsqrt(x) + exp2(x) + log2(2.0);", "v0 = ((rsqrt(p3) + exp2(p3)) + log2(2.0f32))");
    means("let a = exp2_ftz(x);", "v0 = exp2_ftz(p3)");
}

#[test]
fn conversions() {
    means(
        "let h = f16::from_f32(x); let b = bf16::from_f64(x as f64); let e = e4m3::from_bits(n as u8); let s = cast::<e5m2>(h);",
        "v0 = (p3 as f16)\nv1 = ((p3 as f64) as bf16)\nv2 = bits((p0 as u8) as e4m3)\nv3 = (v0 as e5m2)",
    );
    means(
        "let h = f16::from_bits(n as u16); let a = h.to_f32() + f32::from_bits(n); let b = h.to_f64(); let c = h.to_bits() as u32 + x.to_bits();",
        "v0 = bits((p0 as u16) as f16)\nv1 = ((v0 as f32) + bits(p0 as f32))\nv2 = (v0 as f64)\nv3 = ((bits(v0 as u16) as u32) + bits(p3 as u32))",
    );
    means("let a = (n > 1) as u32 + (n as u8 as u32);", "v0 = (((p0 > 1u32) as u32) + ((p0 as u8) as u32))");
}

#[test]
fn help() {
    means("assume(n > 2);", "assume (p0 > 2u32) \"an assumption does not hold\"");
    means("#[trusted = \"it is seen elsewhere\"] sync_threads();", "sync.threads");
    means(
        "assert!(n > 0); assert!(n > 1, \"n {{}}\"); if n > 9 { trap() }",
        "assert (p0 > 0u32) \"n > 0\"\nassert (p0 > 1u32) \"n {}\"\nif (p0 > 9u32)\n  trap",
    );
    means(
        "printf!(\"{n} of {} {{{:8.3}}} {0:x}\\n\", n, x);",
        "printf [Arg { index: 2, hex: false, precision: None, width: None }, Text(\" of \"), \
         Arg { index: 0, hex: false, precision: None, width: None }, Text(\" {\"), \
         Arg { index: 1, hex: false, precision: Some(3), width: Some(8) }, Text(\"} \"), \
         Arg { index: 0, hex: true, precision: None, width: None }, Text(\"\\n\")] [p0, p3, p0]",
    );
    means(
        "trace_span!(\"all\"); loop { trace_span!(\"one\"); if n > 1 { trace_span!(\"two\",); break; } }",
        "span.begin \"all\"\nl0: loop\n  span.begin \"one\"\n  if (p0 > 1u32)\n    span.begin \"two\"\n    \
         span.end \"two\"\n    span.end \"one\"\n    break l0\n  span.end \"one\"\nspan.end \"all\"",
    );
}

#[test]
fn operators() {
    means(
        "let mut a = n; a += 1; a -= 2; a *= 3; a /= 4; a %= 5; a &= 6; a |= 7; a ^= 8; a <<= 1; a >>= 2; a = !a;",
        "v0 = p0\nv0 = (v0 + 1u32)\nv0 = (v0 - 2u32)\nv0 = (v0 * 3u32)\nv0 = (v0 / 4u32)\nv0 = (v0 % 5u32)\n\
         v0 = (v0 & 6u32)\nv0 = (v0 | 7u32)\nv0 = (v0 ^ 8u32)\nv0 = (v0 << 1i32)\nv0 = (v0 >> 2i32)\nv0 = (!v0)",
    );
    means(
        "let mut a = x != 1.0 || x <= 2.0 && x >= -x; a = a == true;",
        "v0 = ((p3 != 1.0f32) | ((p3 <= 2.0f32) & (p3 >= (-p3))))\nv0 = (v0 == true)",
    );
}
