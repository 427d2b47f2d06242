//! Mistakes, as data, and their texts.
//!
//! A family is an enum of the mistakes about one topic. A variant has the facts about a mistake:
//! names, types, numbers, further locations. The family's `text` turns them into a code, a message,
//! notes and a help, in one `match` without a wildcard arm. Types are kept as types. Strings are
//! only names and other text of the user's.

#![warn(clippy::wildcard_enum_match_arm)]
#![allow(missing_docs, reason = "the message of a variant is next to it, and says what its fields are")]

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
mod unsupported_type;
mod value;

pub use argument::{Argument, Counted, Numbers};
pub use assignment::{Assignment, Parameter};
pub use atomic::Atomic;
pub use attribute::{Attribute, Trusted};
pub use build::{Build, SourceFile};
pub use cluster::{Cluster, Slices};
pub use copy::{BulkNumber, Copy, Misalignment};
pub use format::{Format, Ptx, Unprintable};
pub use instances::Instances;
pub use limits::{BarrierCount, Indexed, Limits, UnrolledIteration};
pub use mismatch::{Mismatch, Since};
pub use mma::{Axis, Difference, Mma, MmaSync, RegisterIndex, Warpgroup};
pub(crate) use name::is_constant;
pub use name::{HostItem, Name};
pub use protocol::{Counterexample, LaunchInput};
pub use protocol::{
    Counts, Destination, Lack, Movable, PlainPoll, Protocol, Repair, SourceLocation, StageRole, Subject,
    ThreadAct, ThreadSet, ThreadStep, UnloadedTiles, Unordered,
};
pub use shared::{Pipeline, Shared};
pub use signature::{Qualifier, Signature};
pub use syntax::{Form, Syntax};
pub use template::{Import, Template, Unfound};
pub use tile::{Tile, VectorNumber};
pub use types::{Aggregate, GenericOwner, Types};
pub use unsupported_type::{Demand, UnsupportedType};
pub use value::{NoValue, UntypedConversion, Value};

use std::borrow::Cow;

use super::text::Text;

/// A name in the kernel language.
pub type Word = Cow<'static, str>;

macro_rules! families {
    ($($(#[doc = $doc:literal])+ $Family:ident,)+) => {
        /// A mistake of any family.
        #[derive(Clone, Debug)]
        pub enum Mistake {
            $($(#[doc = $doc])+ $Family($Family),)+
        }

        impl Mistake {
            /// Returns the text of the mistake.
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
    /// Structs and tuples.
    Aggregate,
    /// Numbers of arguments and of generic arguments.
    Argument,
    /// Assignments to values that cannot be modified.
    Assignment,
    /// Accesses with a memory order and a scope, and non-coherent loads.
    Atomic,
    /// Attributes and their positions.
    Attribute,
    /// Requirements that the build does not meet: PTX, or instructions of the target.
    Build,
    /// Clusters, and memory shared between blocks.
    Cluster,
    /// Copies: their coordinates, counts, hints and reductions, and fields of tensor maps.
    Copy,
    /// `printf!` and `assert!`.
    Format,
    /// Imports of modules from others.
    Import,
    /// Instances of generic kernels.
    Instances,
    /// Numbers outside of limits that the hardware or the compiler imposes.
    Limits,
    /// Values of the wrong type.
    Mismatch,
    /// Tensor core operations of a warpgroup.
    Mma,
    /// Tensor core operations of a warp.
    MmaSync,
    /// Names, paths, methods and fields.
    Name,
    /// Pipelines and their stages.
    Pipeline,
    /// Loops that poll memory with plain reads.
    PlainPoll,
    /// Unordered accesses of several blocks to the same global memory.
    Unordered,
    /// The protocol of barriers.
    Protocol,
    /// Shared memory.
    Shared,
    /// `ptx!`.
    Ptx,
    /// Signatures of kernels and device functions.
    Signature,
    /// Rust syntax that kernels do not support.
    Syntax,
    /// Modules that are instantiated from templates.
    Template,
    /// Tiles, and vectors of their elements.
    Tile,
    /// Types as they are spelled in the source.
    Types,
    /// Types that an operation does not support.
    UnsupportedType,
    /// Literals, constants, operators, and failures of inference.
    Value,
    /// Collective operations and shared resources of a warpgroup.
    Warpgroup,
}

impl Mistake {
    /// Returns whether the mistake is that the kernel language is not imported.
    pub fn is_of_imports(&self) -> bool {
        matches!(self, Self::Name(Name::NotImported { .. }))
    }

    /// Returns whether rustc may report the same mistake in the body, which is Rust: a name, a
    /// type, an operand or a form of expression.
    pub fn is_known_to_rustc(&self) -> bool {
        match self {
            Self::Aggregate(_)
            | Self::Argument(_)
            | Self::Assignment(_)
            | Self::Atomic(_)
            | Self::Copy(_)
            | Self::Format(_)
            | Self::Import(Import::Unusable { .. })
            | Self::Mismatch(_)
            | Self::Mma(_)
            | Self::MmaSync(_)
            | Self::Name(_)
            | Self::Pipeline(_)
            | Self::Ptx(_)
            | Self::Shared(_)
            | Self::Syntax(_)
            | Self::Tile(_)
            | Self::Types(_)
            | Self::UnsupportedType(_)
            | Self::Value(_) => true,
            Self::Attribute(_)
            | Self::Build(_)
            | Self::Cluster(_)
            | Self::Import(Import::OtherModule { .. })
            | Self::Instances(_)
            | Self::Limits(_)
            | Self::PlainPoll(_)
            | Self::Unordered(_)
            | Self::Protocol(_)
            | Self::Signature(_)
            | Self::Template(_)
            | Self::Warpgroup(_) => false,
        }
    }

    /// Returns whether the mistake is that the sources of a package are unknown.
    pub fn is_of_packages(&self) -> bool {
        matches!(
            self,
            Self::Template(Template::Unfound { why: Unfound::Package, .. })
                | Self::Import(Import::Unusable { why: Unfound::Package, .. })
        )
    }
}
