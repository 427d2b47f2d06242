//! Examples of arguments for the parameters of a kernel, in the syntax of `cargo tma run`.

use tma_codegen::abi;
use tma_codegen::ir::{Kernel, Param, ParamKind, Presence, TeamNumber};
use tma_model::{Interleave, Scalar, Swizzle, TileType};

/// Number of elements of a buffer in an example.
const ELEMENTS: u32 = 1024;
/// Number of pixels along each dimension of the images in an example.
const PIXELS: u32 = 8;

/// The buffers of an example so far. The first are those of tensor maps, given by `--buffer`.
struct Buffers {
    of_maps: usize,
    argument: usize,
}

/// Lists the parameters, each with its arguments and a suitable example. Together the examples are
/// a launch.
pub(super) fn help(kernel: &Kernel) -> String {
    let is_map = |param: &&Param| matches!(param.kind(), Some(ParamKind::Tiles(_) | ParamKind::Columns(..)));
    let mut buffers = Buffers { of_maps: 0, argument: kernel.params.iter().filter(is_map).count() };
    let mut text = format!("\n`{}` takes these arguments, in order:\n", kernel.path());
    let mut next = 0;
    for param in kernel.passed_params() {
        let last = next + abi::abi_params(param).len();
        let numbers: Vec<_> = (next..last).map(|number| number.to_string()).collect();
        let description = format!("{}: {}", param.name, param.ty);
        text += &format!(
            "  {description}  ({}{})\n",
            if numbers.len() == 1 { "argument " } else { "arguments " },
            numbers.join(" and ")
        );
        text += &format!("      {}\n", buffers.example(param));
        next = last;
    }
    if kernel.params.iter().any(|param| matches!(param.kind(), Some(ParamKind::Global(_)))) {
        text += "A `Global` takes two arguments: a buffer, whose address is passed, and its length.\n";
    }
    text + "A buffer may also be `random:TYPE:SHAPE` or `npy:FILE`"
}

impl Buffers {
    /// Returns an example for a parameter.
    fn example(&mut self, param: &Param) -> String {
        match param.kind() {
            Some(ParamKind::Tiles(tile)) => self.map(tile, None),
            Some(ParamKind::Columns(tile, rank)) => self.map(tile, Some(rank)),
            Some(ParamKind::Global(element)) => {
                let buffer = self.next_argument();
                format!("--arg zeros:{}:{ELEMENTS} --arg len:{buffer}", number_type(element))
            }
            Some(ParamKind::Maps(_)) => {
                self.next_argument();
                "--arg zeros:u8:1024 --arg u64:8   # room for 8 maps of 128 bytes, and their number"
                    .to_owned()
            }
            Some(ParamKind::PeerGlobals(_) | ParamKind::PeerMaps(_)) => {
                "launched by the runtime alone: the memory of all ranks".to_owned()
            }
            Some(ParamKind::Scalar(_)) if param.presence == Presence::Team(TeamNumber::Rank) => {
                "--arg u32:0".to_owned()
            }
            Some(ParamKind::Scalar(scalar)) => format!("--arg {}:1", number_type(scalar)),
            None => String::new(),
        }
    }

    fn next_argument(&mut self) -> usize {
        self.argument += 1;
        self.argument - 1
    }

    /// Returns an example of a map over a tensor of one tile, or over one image in im2col mode.
    fn map(&mut self, tile: &TileType, rank: Option<u32>) -> String {
        let index = self.of_maps;
        self.of_maps += 1;
        let (element, ty) = (map_type(tile.element), number_type(tile.element));
        let layout = layout(tile);
        if tile.swizzle.interleave() != Interleave::None {
            return format!(
                "--buffer zeros:{ty}:SHAPE --arg map:{index}:{element}:extents=SHAPE:box=SHAPE{layout}"
            );
        }
        let (extents, part) = match (rank, &tile.extents[..]) {
            (Some(rank), &[pixels, channels]) => {
                let spatial = (0..rank.saturating_sub(2)).map(|_| PIXELS);
                let extents: Vec<_> = [1].into_iter().chain(spatial).chain([channels]).collect();
                (list(&extents), format!("column={pixels}x{channels}"))
            }
            _ => (list(&tile.extents), format!("box={}", list(&tile.panel().extents))),
        };
        format!("--buffer zeros:{ty}:{extents} --arg map:{index}:{element}:extents={extents}:{part}{layout}")
    }
}

fn list(extents: &[u32]) -> String {
    extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// Formats the swizzle and the interleaved layout of a map as options.
fn layout(tile: &TileType) -> String {
    let swizzle = match tile.swizzle.pattern() {
        Swizzle::None => "",
        Swizzle::B32 => ":swizzle=32",
        Swizzle::B64 => ":swizzle=64",
        Swizzle::B128 => ":swizzle=128",
    };
    let interleave = match tile.swizzle.interleave() {
        Interleave::None => "",
        Interleave::B16 => ":interleave=16",
        Interleave::B32 => ":interleave=32",
    };
    format!("{swizzle}{interleave}")
}

/// Returns the type of a number or of a buffer's elements. 8-bit floats and `bool` are bytes.
fn number_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool | Scalar::E4m3 | Scalar::E5m2 => Scalar::U8.name(),
        Scalar::Tf32 => Scalar::F32.name(),
        Scalar::Usize => Scalar::U64.name(),
        Scalar::I8 | Scalar::U8 | Scalar::I16 | Scalar::U16 | Scalar::I32 | Scalar::U32 => scalar.name(),
        Scalar::I64 | Scalar::U64 | Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => scalar.name(),
    }
}

/// Returns the type of a map's elements. Maps have no small signed types.
fn map_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Tf32 => Scalar::Tf32.name(),
        Scalar::I8 => Scalar::U8.name(),
        Scalar::I16 => Scalar::U16.name(),
        scalar => number_type(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help_for(params: &str) -> String {
        let source = format!("#[tma_kernel(threads = 32)]\nfn k({params}) {{}}\n");
        let accepted = tma_codegen::check("k.rs", &source).unwrap_or_else(|failure| panic!("{failure}"));
        help(accepted.kernels[0].kernel.kernel())
    }

    #[test]
    fn parameters_are_listed_with_their_options() {
        let text = help_for(
            "src: TensorMap<Tile<bf16, Shape2<64, 64>, Swizzle128>>, values: Global<f32>, n: usize, \
             small: TensorMap<Tile<e4m3, Shape1<256>>>, flags: Global<bool>, \
             image: Im2colMap<Tile<f16, Shape2<32, 64>>, 4>",
        );
        assert_eq!(
            text,
            "\n`k` takes these arguments, in order:\n  \
             src: TensorMap<Tile<bf16, Shape2<64, 64>, Swizzle128>>  (argument 0)\n      \
             --buffer zeros:bf16:64x64 --arg map:0:bf16:extents=64x64:box=64x64:swizzle=128\n  \
             values: Global<f32>  (arguments 1 and 2)\n      \
             --arg zeros:f32:1024 --arg len:3\n  \
             n: usize  (argument 3)\n      \
             --arg u64:1\n  \
             small: TensorMap<Tile<e4m3, Shape1<256>>>  (argument 4)\n      \
             --buffer zeros:u8:256 --arg map:1:u8:extents=256:box=256\n  \
             flags: Global<bool>  (arguments 5 and 6)\n      \
             --arg zeros:u8:1024 --arg len:4\n  \
             image: Im2colMap<Tile<f16, Shape2<32, 64>>, 4>  (argument 7)\n      \
             --buffer zeros:f16:1x8x8x64 --arg map:2:f16:extents=1x8x8x64:column=32x64\n\
             A `Global` takes two arguments: a buffer, whose address is passed, and its length.\n\
             A buffer may also be `random:TYPE:SHAPE` or `npy:FILE`"
        );
    }

    #[test]
    fn interleaved_shapes_are_left_to_the_reader() {
        let text = help_for("x: TensorMap<Tile<f16, Shape3<4, 1, 64>, Interleave16>>");
        assert!(text.contains("extents=SHAPE:box=SHAPE:interleave=16\n"), "{text}");
        assert!(!text.contains("`Global`"), "{text}");
    }
}
