//! The macros that generate enums from the rows of the [table](super::table).

/// Generates, for each block of rows, an enum of its words and an enum of their calls.
macro_rules! words {
    ($(
        $(#[$doc:meta])*
        $kind:ident of $owner:ident: $Word:ident => $Call:ident, on $On:ty {
            $( $chapter:literal {
                $(
                    $(#[$mark:ident])*
                    fn $name:ident $(<$($generic:ident),+>)?
                    ($($first:ident: $First:ident $(, $arg:ident: $Arg:ident)*)?) => $Variant:ident;
                )*
                $(
                    for op in $Op:ident: $(#[$of_each:ident])*
                    fn $stem:ident {op} $($end:ident)? $(<$($letter:ident),+>)?
                    ($($each:ident: $Each:ident),+) => $Family:ident;
                )*
            } )+
        }
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[allow(missing_docs, reason = "each variant is the word of its name")]
            pub enum $Word {
                $( $($Variant,)* $($Family($Op),)* )+
            }

            #[doc = concat!("A call of a [`", stringify!($Word), "`], with its arguments.")]
            #[derive(Debug)]
            #[allow(dead_code, reason = "a `for` knows its words by their names alone")]
            #[allow(clippy::large_enum_variant, reason = "a call is read, and then taken apart")]
            pub(crate) enum $Call {
                $(
                    $( $Variant $({
                        $first: <shape::$First as Shape<$On>>::Operand,
                        $($arg: <shape::$Arg as Shape<$On>>::Operand,)*
                    })?, )*
                    $( $Family { op: $Op, $($each: <shape::$Each as Shape<$On>>::Operand),+ }, )*
                )+
            }

            impl Word for $Word {
                fn all() -> Vec<Self> {
                    [$(
                        $(&[Self::$Variant][..],)*
                        $(&$Op::ALL.map(Self::$Family)[..],)*
                    )+].concat()
                }

                fn name(self) -> Cow<'static, str> {
                    match self { $(
                        $( Self::$Variant => stringify!($name).into(), )*
                        $( Self::$Family(op) => {
                            [stringify!($stem), op.name(), concat!($(stringify!($end))?)].concat().into()
                        } )*
                    )+ }
                }

                fn signature(self) -> &'static Signature {
                    match self { $(
                        $( Self::$Variant => const { &Signature {
                            #[cfg(test)]
                            owner: super::Owner::$kind(stringify!($owner)),
                            #[cfg(test)]
                            chapter: $chapter,
                            marks: &[$(Mark::$mark),*],
                            generics: &[$($(Generic::$generic),+)?],
                            parameters: &[$(
                                parameter!($On, $first: $First), $(parameter!($On, $arg: $Arg)),*
                            )?],
                        } }, )*
                        $( Self::$Family(_) => const { &Signature {
                            #[cfg(test)]
                            owner: super::Owner::$kind(stringify!($owner)),
                            #[cfg(test)]
                            chapter: $chapter,
                            marks: &[$(Mark::$of_each,)* Mark::Family],
                            generics: &[$($(Generic::$letter),+)?],
                            parameters: &[$(parameter!($On, $each: $Each)),+],
                        } }, )*
                    )+ }
                }
            }

            impl Callable for $Word {
                type Call = $Call;
                type On = $On;

                #[allow(unused_variables, reason = "there may be no word with arguments")]
                fn read(self, typing: &mut Typing<'_>, on: &Self::On, values: Vec<Expr>, span: Span) -> Option<$Call> {
                    match self { $(
                        $( Self::$Variant => {
                            let [$($first $(, $arg)*)?] = counted(typing, self, values, span)?;
                            $(
                                let $first = <shape::$First as Shape<$On>>::read(typing, on, $first);
                                $(let $arg = <shape::$Arg as Shape<$On>>::read(typing, on, $arg);)*
                            )?
                            Some($Call::$Variant $({ $first: $first?, $($arg: $arg?),* })?)
                        } )*
                        $( Self::$Family(op) => {
                            let [$($each),+] = counted(typing, self, values, span)?;
                            $(let $each = <shape::$Each as Shape<$On>>::read(typing, on, $each);)+
                            Some($Call::$Family { op, $($each: $each?),+ })
                        } )*
                    )+ }
                }
            }
        )+

        /// Every word of these rows.
        #[cfg(test)]
        pub(super) fn rows() -> Vec<super::Entry> {
            let mut all = vec![];
            $( all.extend($Word::all().into_iter().map(super::Entry::of)); )+
            all
        }
    };
}

/// Generates the entry of a parameter.
macro_rules! parameter {
    ($On:ty, $name:ident: $Shape:ident) => {
        Parameter {
            name: stringify!($name),
            note: <shape::$Shape as Shape<$On>>::NOTE,
            by_mut: <shape::$Shape as Shape<$On>>::BY_MUT,
        }
    };
}

/// Generates an enum of names without arguments.
macro_rules! names {
    ($(
        $(#[$doc:meta])*
        $Word:ident in $chapter:literal { $($name:ident => $Variant:ident),+ $(,)? }
    )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is the word of its name")]
        pub enum $Word { $($Variant),+ }

        impl $Word {
            /// The heading in `docs/language` under which they are documented.
            #[cfg(test)]
            pub(crate) const CHAPTER: &'static str = $chapter;

            /// Every name, in the order of the table.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$Variant),+];

            /// Looks up a name.
            pub(crate) fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.name() == name)
            }

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => stringify!($name)),+ }
            }
        }
    )+ };
}

/// Generates an enum of types with their generic parameters.
macro_rules! types {
    (
        $(#[$doc:meta])*
        $Word:ident {
            $( $chapter:literal {
                $( type $name:ident $(<$($generic:ident),+>)?; )*
                $( for ty in $Family:ident; )*
            } )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is the word of its name")]
        pub enum $Word {
            $( $($name,)* $($Family($Family),)* )+
        }

        impl $Word {
            /// Returns every type, in the order of the table.
            pub(crate) fn all() -> Vec<Self> {
                let mut all = vec![];
                $( $(all.push(Self::$name);)* $(all.extend($Family::ALL.map(Self::$Family));)* )+
                all
            }

            /// Looks up the type of this name. Every name in a kernel's types is looked up here, so
            /// this does not build a table.
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $( $(stringify!($name) => return Some(Self::$name),)* )+
                    _ => {}
                }
                $( $(
                    if let Some(ty) = $Family::ALL.iter().find(|ty| ty.name() == name) {
                        return Some(Self::$Family(*ty));
                    }
                )* )+
                None
            }

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $( $(Self::$name => stringify!($name),)* $(Self::$Family(ty) => ty.name(),)* )+ }
            }

            /// Returns the heading in `docs/language` under which it is documented.
            #[cfg(test)]
            pub(crate) fn chapter(self) -> &'static str {
                match self { $( $(Self::$name => $chapter,)* $(Self::$Family(_) => $chapter,)* )+ }
            }

            /// Returns the generic parameters.
            pub fn generics(self) -> &'static [Generic] {
                match self {
                    $( $(Self::$name => &[$($(Generic::$generic),+)?],)* $(Self::$Family(_) => &[],)* )+
                }
            }
        }
    };
}
