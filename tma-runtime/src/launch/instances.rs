//! Tables of a kernel's instances, by element types and constants.
//!
//! The module of a generic kernel has the types of its table: `Key` and `Launcher`. Everything that
//! does not depend on the kernel is here.

use std::any::TypeId;
use std::fmt;

use crate::error::Error;
use crate::launch::{Arg, Grid, LaunchOn, LaunchOnTeam, TeamArg, launch};
use crate::spec::KernelSpec;

/// The types and constants of an instance.
#[derive(Clone, Copy)]
pub struct InstanceEntry<K: 'static> {
    types: fn() -> TypeId,
    key: K,
    spec: &'static KernelSpec,
}

impl<K> InstanceEntry<K> {
    /// Makes the entry of the instance with the constants `key`, and with type generics whose tuple
    /// has the identifier `types`.
    pub const fn new(types: fn() -> TypeId, key: K, spec: &'static KernelSpec) -> Self {
        Self { types, key, spec }
    }
}

impl<K: fmt::Debug> fmt::Debug for InstanceEntry<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// A table of the instances of a kernel, or of a kernel made from it, by element types and by the
/// constants of the kernel's `Key`.
///
/// `kernel::table()` has all instances of a kernel, and `kernel::table_of::<T>()` those with some
/// types. If the kernel is in a module made from a template, both take the arguments of the
/// functions that replace others, and the launchers that the table finds are those of the template:
/// a library can launch its users' kernels like its own.
#[derive(Debug)]
pub struct Instances<'a, K: 'static> {
    groups: &'static [&'static [InstanceEntry<K>]],
    added: Vec<Arg<'a>>,
}

impl<'a, K: Copy + Eq + 'static> Instances<'a, K> {
    /// Makes the table of these instances.
    pub const fn new(groups: &'static [&'static [InstanceEntry<K>]]) -> Self {
        Self { groups, added: vec![] }
    }

    /// Sets the arguments that follow those of a launch.
    #[must_use]
    pub fn with<'b>(&self, added: impl Into<Vec<Arg<'b>>>) -> Instances<'b, K> {
        Instances { groups: self.groups, added: added.into() }
    }

    /// Returns the launcher of the instance with this key and the launcher's types, if it was
    /// compiled.
    pub fn find<'t, L: TypedLauncher<'t, Key = K>>(&'t self, key: K) -> Option<L> {
        self.instance::<L::Types>(key).map(L::of)
    }

    /// Returns the keys of the instances with the launcher's types, in the order of the attribute.
    pub fn keys<'t, L: TypedLauncher<'t, Key = K>>(&self) -> impl Iterator<Item = K> {
        self.keys_of::<L::Types>()
    }

    /// Returns the instance with this key, whose type generics are the tuple `T`.
    pub fn instance<T: 'static>(&self, key: K) -> Option<TableInstance<'_>> {
        let is_meant = |entry: &&InstanceEntry<K>| entry.key == key && (entry.types)() == TypeId::of::<T>();
        let entry = self.entries().find(is_meant)?;
        Some(TableInstance { spec: entry.spec, added: &self.added })
    }

    /// Returns the keys of the instances whose type generics are the tuple `T`, in the order of the
    /// attribute.
    pub fn keys_of<T: 'static>(&self) -> impl Iterator<Item = K> + use<T, K> {
        let types = TypeId::of::<T>();
        self.entries().filter(move |entry| (entry.types)() == types).map(|entry| entry.key)
    }

    /// Returns the specifications of all instances, those with the same element types together.
    pub fn specs(&self) -> impl Iterator<Item = &'static KernelSpec> + use<K> {
        self.entries().map(|entry| entry.spec)
    }

    fn entries(&self) -> impl Iterator<Item = &'static InstanceEntry<K>> + use<K> {
        self.groups.iter().copied().flatten()
    }
}

/// An instance of a kernel, with the arguments that its [table](Instances) adds to those of a
/// launch.
#[derive(Clone, Copy, Debug)]
pub struct TableInstance<'a> {
    spec: &'static KernelSpec,
    added: &'a [Arg<'a>],
}

impl TableInstance<'_> {
    /// Returns the instance's specification.
    pub fn spec(&self) -> &'static KernelSpec {
        self.spec
    }

    /// Queues the instance: [`launch()`] with `args`, those that the table adds, and `flags`, which
    /// say of each optional slice whether it is there.
    ///
    /// # Errors
    ///
    /// The errors of [`launch()`].
    pub fn launch(
        &self,
        on: &impl LaunchOn,
        grid: Grid,
        args: &[Arg<'_>],
        flags: &[Arg<'_>],
    ) -> Result<(), Error> {
        let all: Vec<_> = args.iter().chain(self.added).chain(flags).map(Arg::again).collect();
        launch(on, self.spec, grid, &all)
    }

    /// Queues the instance of a team kernel like [`launch`](Self::launch). Every rank takes the same
    /// arguments of those that the table adds.
    ///
    /// # Errors
    ///
    /// The errors of [`LaunchOnTeam::launch_on_team`].
    pub fn launch_on_team(
        &self,
        on: &impl LaunchOnTeam,
        grid: Grid,
        args: &[TeamArg<'_>],
        flags: &[TeamArg<'_>],
    ) -> Result<(), Error> {
        let added: Vec<_> = self.added.iter().map(TeamArg::of_all).collect();
        let all: Vec<_> = args.iter().chain(&added).chain(flags).map(TeamArg::again).collect();
        on.launch_on_team(self.spec, grid, &all)
    }
}

/// The `Launcher` of a kernel: it launches one instance, with the kernel's own parameters.
///
/// `#[tma_kernel]` implements it for each generic kernel, except one with parameters that its
/// template does not have.
pub trait TypedLauncher<'a>: Copy {
    /// The constants that the attribute lists for each instance.
    type Key: Copy + Eq + 'static;

    /// The kernel's type generics, as a tuple.
    type Types: 'static;

    /// Makes the launcher of an instance of these types.
    fn of(instance: TableInstance<'a>) -> Self;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{KernelParts, ParamKind, ParamSpec};

    const PARTS: KernelParts = KernelParts {
        params: &[
            ParamSpec { name: "n", kind: ParamKind::Scalar { bytes: 4 } },
            ParamSpec { name: "x", kind: ParamKind::Scalar { bytes: 8 } },
            ParamSpec { name: "on", kind: ParamKind::Scalar { bytes: 1 } },
        ],
        ..KernelParts::NOTHING
    };

    const fn spec(name: &'static str) -> KernelSpec {
        // SAFETY: the kernel does nothing.
        unsafe { KernelSpec::from_parts(KernelParts { name, ..PARTS }) }
    }

    static FLOATS: [InstanceEntry<u32>; 2] = [
        InstanceEntry::new(TypeId::of::<(f32,)>, 1, &spec("a")),
        InstanceEntry::new(TypeId::of::<(f32,)>, 2, &spec("c")),
    ];
    static WORDS: [InstanceEntry<u32>; 1] = [InstanceEntry::new(TypeId::of::<(u32,)>, 2, &spec("b"))];
    static GROUPS: [&[InstanceEntry<u32>]; 2] = [&FLOATS, &WORDS];
    static TABLE: Instances<'static, u32> = Instances::new(&GROUPS);

    #[test]
    fn instances_are_found_by_types_and_constants() {
        let found = |instance: Option<TableInstance<'_>>| instance.map(|instance| instance.spec().name);
        assert_eq!(found(TABLE.instance::<(f32,)>(2)), Some("c"));
        assert_eq!(found(TABLE.instance::<(u32,)>(2)), Some("b"));
        assert_eq!(found(TABLE.instance::<(u32,)>(1)), None);
        assert_eq!(TABLE.keys_of::<(f32,)>().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(TABLE.keys_of::<(f64,)>().count(), 0);
        assert!(TABLE.specs().map(|spec| spec.name).eq(["a", "c", "b"]));
    }

    /// The launch reports the first argument that does not fit, or that there are too few.
    #[cfg(feature = "ptx-sim")]
    #[test]
    fn added_arguments_follow_those_of_the_launch() {
        let device = crate::Device::simulator();
        let table = TABLE.with([Arg::scalar(1.0f64)]);
        let instance = table.instance::<(f32,)>(1).expect("an instance");
        let error = |flags: &[Arg<'_>]| {
            let launched = instance.launch(&device, Grid::from(1), &[Arg::scalar(1u32)], flags);
            launched.expect_err("the PTX has no parameters").to_string()
        };
        assert!(error(&[]).contains("2"), "{}", error(&[]));
        assert!(!error(&[Arg::scalar(true)]).contains("argument"), "{}", error(&[Arg::scalar(true)]));
    }
}
