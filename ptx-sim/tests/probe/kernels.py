"""PTX of the probe's kernels: one box of a tensor map, moved once. Written by hand, one entry an operation and rank.

`python3 kernels.py > kernels.ptx` makes the file that the GPU and the simulator both run.
"""

DUMP = 20480  # bytes of shared memory that a load's kernel fills, and writes out at its end
PARAMS = """(
    .param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, .param .u32 place,
    .param .u32 c0, .param .u32 c1, .param .u32 c2, .param .u32 c3, .param .u32 c4,
    .param .u32 o0, .param .u32 o1, .param .u32 o2)"""
REDUCTIONS = ["add", "min", "max", "inc", "dec", "and", "or", "xor"]


def start(name):
    return f""".visible .entry {name}{PARAMS}
.reqntid 32
{{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<24>;
    .reg .b64 %rd<8>;
    .shared .align 1024 .b8 tile[{DUMP}];
    .shared .align 8 .b64 bar;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, tile;
    mov.u32 %r2, bar;
    ld.param.u32 %r3, [place];
    add.u32 %r3, %r1, %r3;
    ld.param.u32 %r10, [c0];
    ld.param.u32 %r11, [c1];
    ld.param.u32 %r12, [c2];
    ld.param.u32 %r13, [c3];
    ld.param.u32 %r14, [c4];
    ld.param.u32 %r15, [o0];
    cvt.u16.u32 %h0, %r15;
    ld.param.u32 %r15, [o1];
    cvt.u16.u32 %h1, %r15;
    ld.param.u32 %r15, [o2];
    cvt.u16.u32 %h2, %r15;
    mov.b64 %rd0, map;
    cvta.param.u64 %rd0, %rd0;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    setp.ne.u32 %p0, %r0, 0;
"""


def fill(value):
    """All 32 threads write the tile's words: `value` is what makes %r5 of the word's number in %r4."""
    return f"""    mov.u32 %r4, %r0;
FILL:
{value}
    shl.b32 %r6, %r4, 2;
    add.u32 %r6, %r6, %r1;
    st.shared.b32 [%r6], %r5;
    add.u32 %r4, %r4, 32;
    setp.lt.u32 %p1, %r4, {DUMP // 4};
    @%p1 bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""


POISON = "    mov.u32 %r5, 0xeeeeeeee;"
# Bits of all kinds: the number times an odd constant, its halves mixed.
BITS = """    mul.lo.u32 %r5, %r4, 0x9e3779b1;
    shr.u32 %r7, %r5, 15;
    xor.b32 %r5, %r5, %r7;
    mul.lo.u32 %r5, %r5, 0x85ebca77;"""


def coordinates(rank):
    return "{" + ", ".join(f"%r{10 + i}" for i in range(rank)) + "}"


def load(rank, im2col):
    mode = "im2col" if im2col else "tile"
    offsets = ", {" + ", ".join(f"%h{i}" for i in range(rank - 2)) + "}" if im2col else ""
    copy = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    return start(f"load_{mode}_{rank}d") + f"""    @%p0 bra READY;
    mbarrier.init.shared.b64 [%r2], 1;
    fence.mbarrier_init.release.cluster;
READY:
""" + fill(POISON) + f"""    @%p0 bra WAIT;
    {copy} [%r3], [%rd0, {coordinates(rank)}], [%r2]{offsets};
    ld.param.u32 %r8, [bytes];
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r8;
WAIT:
    bar.sync 0;
    mov.u32 %r9, 0;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
    @%p2 bra DONE;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p3, %r9, 64;
    @%p3 bra AGAIN;
    st.global.u32 [%rd1+{DUMP}], %r9;
DONE:
    mov.u32 %r4, %r0;
COPY:
    shl.b32 %r6, %r4, 2;
    cvt.u64.u32 %rd3, %r6;
    add.u64 %rd3, %rd3, %rd1;
    add.u32 %r6, %r6, %r1;
    ld.shared.b32 %r5, [%r6];
    st.global.b32 [%rd3], %r5;
    add.u32 %r4, %r4, 32;
    setp.lt.u32 %p1, %r4, {DUMP // 4};
    @%p1 bra COPY;
    ret;
}}
"""


def store(rank, im2col, reduction):
    mode = "im2col_no_offs" if im2col else "tile"
    if reduction:
        name = f"reduce_{reduction}_{mode}_{rank}d"
        copy = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduction}.{mode}.bulk_group"
    else:
        name = f"store_{mode}_{rank}d"
        copy = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group"
    return start(name) + fill(BITS) + f"""    @%p0 bra DONE;
    {copy} [%rd0, {coordinates(rank)}], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
DONE:
    ret;
}}
"""


def text():
    parts = [".version 8.3\n.target sm_90a\n.address_size 64\n"]
    parts += [load(rank, False) for rank in range(1, 6)] + [load(rank, True) for rank in range(3, 6)]
    parts += [store(rank, False, None) for rank in range(1, 6)] + [store(rank, True, None) for rank in range(3, 6)]
    parts += [store(rank, False, op) for op in REDUCTIONS for rank in range(1, 4)]
    parts += [store(rank, True, op) for op in ["add", "xor"] for rank in range(3, 6)]
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
