//! Mistakes, as data, and what is said of each.
//!
//! A family is an enum, with the mistakes about one topic and what is known of each: names, types,
//! numbers, further places. Its `text` makes code, message, notes and help of them, in one `match`
//! without an arm for all the others. Types are kept as types; strings are names and other text of
//! the user's.

#![warn(clippy::wildcard_enum_match_arm)]

mod argument;
mod assignment;
mod atomic;
mod attribute;
mod build;
mod cluster;
mod copy;
mod format;
mod instances;
mod limits;
mod mismatch;
mod mma;
mod name;
mod protocol;
mod shared;
mod signature;
mod syntax;
mod template;
mod tile;
mod types;
mod unfit;
mod value;

pub(crate) use argument::{Argument, Counted, Numbers};
pub(crate) use assignment::Assignment;
pub(crate) use atomic::Atomic;
pub(crate) use attribute::{Attribute, Trusted};
pub(crate) use build::{Build, SourceFile};
pub(crate) use cluster::{Cluster, Slices};
pub(crate) use copy::{Beside, BulkNumber, Copy};
pub(crate) use format::{Format, Unprintable};
pub(crate) use instances::Instances;
pub(crate) use limits::{BarrierCount, Indexed, Limits, Turn};
pub(crate) use mismatch::{Mismatch, Since};
pub(crate) use mma::{Axis, Difference, Mma, MmaSync, RegisterIndex, Warpgroup};
pub(crate) use name::{HostItem, Name};
pub(crate) use protocol::{
    Act, Counts, Destination, Lack, Movable, Place, PlainPoll, Protocol, ProtocolRule, Repair, RingPart,
    Step, Subject, Threads, Unordered,
};
pub use protocol::{Counterexample, Given};
pub(crate) use shared::{Pipeline, Shared};
pub(crate) use signature::{Qualifier, Signature};
pub(crate) use syntax::{Form, Syntax};
pub(crate) use template::{Template, Unfound};
pub(crate) use tile::{Tile, VectorNumber};
pub(crate) use types::Types;
pub(crate) use unfit::{Demand, Unfit};
pub(crate) use value::{NoValue, Untold, Value};

use std::borrow::Cow;

use super::text::Text;

/// The name of a word of the kernel language.
pub(crate) type Word = Cow<'static, str>;

macro_rules! families {
    ($($(#[doc = $doc:literal])+ $Family:ident,)+) => {
        /// A mistake of some family.
        #[derive(Clone, Debug)]
        pub(crate) enum Mistake {
            $($(#[doc = $doc])+ $Family($Family),)+
        }

        impl Mistake {
            /// What is said of it.
            pub(super) fn text(&self) -> Text {
                match self {
                    $(Self::$Family(mistake) => mistake.text(),)+
                }
            }
        }

        $(impl From<$Family> for Mistake {
            fn from(mistake: $Family) -> Self {
                Self::$Family(mistake)
            }
        })+
    };
}

families! {
    /// Numbers of arguments and of generic arguments.
    Argument,
    /// Assignments to what cannot be changed.
    Assignment,
    /// Accesses with an order and a scope.
    Atomic,
    /// Attributes, and where they stand.
    Attribute,
    /// What the build lacks: PTX, or instructions of the target.
    Build,
    /// Clusters and what other blocks share.
    Cluster,
    /// Copies: their coordinates, counts, hints and reductions, and fields of tensor maps.
    Copy,
    /// `printf!` and `assert!`.
    Format,
    /// Instances of generic kernels.
    Instances,
    /// Numbers that the hardware or the compiler bounds.
    Limits,
    /// Values of another type than is wanted.
    Mismatch,
    /// Tensor cores.
    Mma,
    /// Multiplications by a warp.
    MmaSync,
    /// Names, paths, methods and fields.
    Name,
    /// Pipelines and their stages.
    Pipeline,
    /// Loops that wait for memory that is read plainly.
    PlainPoll,
    /// Blocks that access the same global memory, and nothing orders them.
    Unordered,
    /// The protocol of barriers.
    Protocol,
    /// Shared memory.
    Shared,
    /// Signatures of kernels and device functions.
    Signature,
    /// Forms of Rust that kernels do not have.
    Syntax,
    /// Modules that are made from others.
    Template,
    /// Tiles, and vectors of their elements.
    Tile,
    /// Types as they are written.
    Types,
    /// Types that an operation does not take.
    Unfit,
    /// Literals, constants, operators, and what inference does not find.
    Value,
    /// What a warpgroup does and has together.
    Warpgroup,
}

impl Mistake {
    /// Whether it is that nothing imports the vocabulary.
    pub(crate) fn is_of_imports(&self) -> bool {
        matches!(self, Self::Name(Name::NotImported { .. }))
    }

    /// Whether it is that no sources of a package are known.
    pub(crate) fn is_of_packages(&self) -> bool {
        matches!(self, Self::Template(Template::Unfound { why: Unfound::Package, .. }))
    }
}
