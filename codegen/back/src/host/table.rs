//! The table of a kernel's instances: its types `Key` and `Launcher`, and the functions that make
//! and search it. The rest is in `tma_runtime::launch::Instances`.
//!
//! The table has a `static` for each group of instances with the same element types. Functions that
//! know the types choose a group in a constant expression. A program that calls them refers to no
//! other group, and the linker leaves the PTX of the others out.
//!
//! A kernel of a module that is made from a template has the template's `Key`. A library that
//! exports the template finds instances of both in the same way.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{GenericParam, ItemFn, Path};
use tma_front::ir::{Argument, Kernel, Scalar};
use tma_front::parse::snake;

use super::added_params;
use super::generic::{Generics, Signature, argument, arguments};
use super::launcher::{Target, host_type, launch_doc};
use super::spec::element;

/// The origin of a kernel.
pub(crate) struct Origin<'a> {
    /// The parameters that replacements add to the template's kernels.
    pub(crate) added_params: &'a [String],
    /// The template that the kernel's module is made from.
    pub(crate) template: Option<Template<'a>>,
}

/// A template.
pub(crate) struct Template<'a> {
    /// Its path.
    pub(crate) path: &'a Path,
    /// The kernels that can be named by that path.
    pub(crate) kernels: &'a [String],
}

/// A field of the key.
struct Field {
    /// The position among the kernel's generics.
    generic: usize,
    declared: Ident,
    name: Ident,
    ty: TokenStream,
}

/// Generates the table of the instances `kernels` of `function`, whose generics in `computed`
/// follow from the others. Generates nothing if there are none, and only the key if types on the
/// host do not distinguish them, or if their parameters differ in form.
pub(crate) fn table(
    function: &ItemFn,
    kernels: &[&Kernel],
    computed: &[String],
    origin: &Origin<'_>,
) -> TokenStream {
    let Some(first) = kernels.first().filter(|kernel| kernel.instance.is_some()) else {
        return TokenStream::new();
    };
    let fields = fields(function, first, computed);
    let key = key(first, &fields, origin);
    let generics = Generics::of(function, kernels);
    let signature = generics.as_ref().and_then(|generics| generics.signature(kernels));
    let groups = generics.as_ref().and_then(|generics| groups(kernels, generics, &fields));
    let (Some(generics), Some(signature), Some(groups)) = (generics, signature, groups) else {
        return key;
    };
    let added = added_params::inputs(first, origin.added_params);
    let launcher =
        launcher(first, &generics, &signature, added.as_ref().is_some_and(|(_, args)| args.is_empty()));
    let path = &first.name;
    let (types, bounded) = (&generics.types, &generics.bounded_types);
    let find_doc = format!("Returns the launcher of the instance of `{path}` with these types and this key.");
    let keys_doc = format!(
        "Returns the keys of the instances of `{path}` with these types, in the order of the attribute."
    );
    let statics = statics(&groups);
    let chosen = chosen(&groups, &generics);
    let tables = added.map(|(inputs, args)| tables(path, &generics, &inputs, &args));
    quote! {
        #key
        #launcher
        #statics

        fn compiled<#(#bounded),*>() -> &'static ::tma_runtime::launch::Instances<'static, self::Key> {
            const { &::tma_runtime::launch::Instances::new(const { #chosen }) }
        }

        #[doc = #find_doc]
        pub fn find<#(#bounded),*>(
            key: self::Key,
        ) -> ::core::option::Option<self::Launcher<'static, #(#types),*>> {
            let instance = self::compiled::<#(#types),*>().instance::<(#(#types,)*)>(key)?;
            ::core::option::Option::Some(self::Launcher(instance, ::core::marker::PhantomData))
        }

        #[doc = #keys_doc]
        pub fn keys<#(#bounded),*>() -> impl ::core::iter::Iterator<Item = self::Key> {
            self::compiled::<#(#types),*>().keys_of::<(#(#types,)*)>()
        }

        #tables
    }
}

/// The instances with the same element types.
struct Group {
    /// The name of the `static` with the entries.
    name: Ident,
    /// The element types, in the order of the generics that are an element type in every instance.
    elements: Vec<Scalar>,
    entries: Vec<TokenStream>,
}

/// Returns the groups of the instances, in the order in which the attribute lists their first
/// instances. Returns `None` if the host has no type for some argument.
fn groups(kernels: &[&Kernel], generics: &Generics, fields: &[Field]) -> Option<Vec<Group>> {
    let mut groups: Vec<Group> = vec![];
    for (i, kernel) in kernels.iter().enumerate() {
        let entry = entry(kernel, fields)?;
        let elements: Vec<_> =
            generics.elements.iter().filter_map(|(_, elements)| elements.get(i)).copied().collect();
        match groups.iter_mut().find(|group| group.elements == elements) {
            Some(group) => group.entries.push(entry),
            None => {
                let name = format_ident!("GROUP_{}", groups.len());
                groups.push(Group { name, elements, entries: vec![entry] });
            }
        }
    }
    Some(groups)
}

/// Generates the entries of each group, and the list of all groups.
fn statics(groups: &[Group]) -> TokenStream {
    let entries_of_groups = groups.iter().map(|Group { name, entries, .. }| {
        let count = entries.len();
        quote! {
            static #name: [::tma_runtime::launch::InstanceEntry<self::Key>; #count] = {
                use ::core::any::TypeId;
                use ::tma_runtime::launch::InstanceEntry;
                [#(#entries),*]
            };
        }
    });
    let (names, count) = (groups.iter().map(|group| &group.name), groups.len());
    quote! {
        #(#entries_of_groups)*

        static GROUPS: [&[::tma_runtime::launch::InstanceEntry<self::Key>]; #count] = [#(&self::#names),*];
    }
}

/// Generates the expression that selects the groups with the element types of generics. `u64` and
/// `usize` are one element type, which the entries tell apart.
fn chosen(groups: &[Group], generics: &Generics) -> TokenStream {
    if generics.elements.is_empty() {
        return quote!(&self::GROUPS);
    }
    let mut patterns: Vec<(String, TokenStream, Vec<&Ident>)> = vec![];
    for group in groups {
        let elements = group.elements.iter().map(|scalar| element(*scalar));
        let pattern = quote!((#(#elements,)*));
        let text = pattern.to_string();
        match patterns.iter_mut().find(|(known, ..)| *known == text) {
            Some((.., names)) => names.push(&group.name),
            None => patterns.push((text, pattern, vec![&group.name])),
        }
    }
    let generics = generics.elements.iter().map(|(name, _)| {
        let name = format_ident!("{name}");
        quote!(<#name as ::tma_runtime::Scalar>::ELEMENT)
    });
    let arms = patterns.iter().map(|(_, pattern, names)| quote!(#pattern => &[#(&self::#names),*]));
    quote! {
        match (#(#generics,)*) {
            #(#arms,)*
            _ => &[],
        }
    }
}

/// Generates the functions that return a table: of all instances, and of those with some types.
/// They take `inputs`, which become `args`, the arguments of functions that replace others.
fn tables(path: &str, generics: &Generics, inputs: &[TokenStream], args: &[TokenStream]) -> TokenStream {
    let (types, bounded) = (&generics.types, &generics.bounded_types);
    let count = args.len();
    let (lifetime, of) = match count {
        0 => (None, quote!('static)),
        _ => (Some(quote!('a,)), quote!('a)),
    };
    let returned = quote!(::tma_runtime::launch::Instances<#of, self::Key>);
    let added = quote!(let added: [::tma_runtime::launch::Arg<#of>; #count] = [#(#args),*];);
    let more = match count {
        0 => "",
        _ => ", for launchers of its template, with the arguments of functions that replace others",
    };
    let all_doc = format!("Returns the table of all instances of `{path}`{more}.");
    let all = quote! {
        #[doc = #all_doc]
        #[allow(clippy::too_many_arguments)]
        pub fn table<#lifetime>(#(#inputs),*) -> #returned {
            #added
            ::tma_runtime::launch::Instances::new(&self::GROUPS).with(added)
        }
    };
    if types.is_empty() {
        return all;
    }
    let doc = format!(
        "Returns the table of the instances of `{path}` with these element types{more}. Unlike with \
         `table`, the program carries no others."
    );
    quote! {
        #all

        #[doc = #doc]
        #[allow(clippy::too_many_arguments)]
        pub fn table_of<#lifetime #(#bounded),*>(#(#inputs),*) -> #returned {
            #added
            self::compiled::<#(#types),*>().with(added)
        }
    }
}

/// Returns the fields of the key: the const generics that are not computed.
fn fields(function: &ItemFn, kernel: &Kernel, computed: &[String]) -> Vec<Field> {
    let mut known = HashSet::new();
    let params = function.sig.generics.params.iter().enumerate();
    let fields = params.filter_map(|(generic, param)| {
        let (GenericParam::Const(param), Some(Argument::Const(_, scalar))) =
            (param, kernel.arguments.get(generic))
        else {
            return None;
        };
        let declared = param.ident.clone();
        if computed.contains(&declared.to_string()) {
            return None;
        }
        let mut name = snake(&declared);
        // Two generics may differ only in case.
        while !known.insert(name.clone()) {
            name.push('_');
        }
        Some(Field { generic, declared, name: field(&name), ty: host_type(*scalar) })
    });
    fields.collect()
}

/// Returns an identifier of this name, raw if it is a keyword.
fn field(name: &str) -> Ident {
    let plain = || syn::parse_str::<Ident>(name).ok();
    let raw = || syn::parse_str::<Ident>(&format!("r#{name}")).ok();
    plain().or_else(raw).unwrap_or_else(|| format_ident!("{name}_"))
}

/// Generates the key, or names that of the template.
fn key(kernel: &Kernel, fields: &[Field], origin: &Origin<'_>) -> TokenStream {
    let path = &kernel.name;
    if let Some(template) = origin.template.as_ref().filter(|template| template.kernels.contains(path)) {
        let (of, kernel) = (template.path, format_ident!("{path}"));
        return quote!(
            #[doc(no_inline)]
            pub use #of::#kernel::Key;
        );
    }
    let doc = format!("The constants of an instance of `{path}`, except those that follow from them.");
    let docs = fields.iter().map(|field| format!("The generic `{}`.", field.declared));
    let (names, types) = (fields.iter().map(|field| &field.name), fields.iter().map(|field| &field.ty));
    quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Key {
            #(#[doc = #docs] pub #names: #types,)*
        }
    }
}

/// Generates the entry of an instance.
fn entry(kernel: &Kernel, fields: &[Field]) -> Option<TokenStream> {
    let consts = fields.iter().map(|field| {
        let (name, value) = (&field.name, argument(kernel.arguments.get(field.generic)?)?);
        Some(quote!(#name: #value))
    });
    let consts = consts.collect::<Option<Vec<_>>>()?;
    let types =
        kernel.arguments.iter().zip(arguments(kernel)?).filter_map(|(argument, tokens)| match argument {
            Argument::Const(..) => None,
            Argument::Element(_) | Argument::Swizzle(_) | Argument::Other => Some(tokens),
        });
    let instance = format_ident!("{}", kernel.instance.as_deref()?);
    Some(
        quote!(InstanceEntry::new(TypeId::of::<(#(#types,)*)>, self::Key { #(#consts),* }, &self::#instance::SPEC)),
    )
}

/// Generates the launcher. Tables find it only if it `passes_all` parameters itself.
fn launcher(kernel: &Kernel, generics: &Generics, signature: &Signature, passes_all: bool) -> TokenStream {
    let path = &kernel.name;
    let (types, bounded) = (&generics.types, &generics.bounded_types);
    let Signature { params, args, flag_args, flags } = signature;
    let target = Target::of(kernel);
    let (on_trait, launch) = (target.on(), target.launch_instance());
    // The hygiene of this span makes them distinct from any name of the user.
    let [on, grid] = ["on", "grid"].map(|name| Ident::new(name, Span::mixed_site()));
    let (doc, launch_doc) = (format!("Launches an instance of `{path}`."), launch_doc(path));
    let typed = passes_all.then(|| {
        quote! {
            impl<'a, #(#bounded),*> ::tma_runtime::launch::TypedLauncher<'a> for Launcher<'a, #(#types),*> {
                type Key = self::Key;
                type Types = (#(#types,)*);

                fn of(instance: ::tma_runtime::launch::TableInstance<'a>) -> Self {
                    Self(instance, ::core::marker::PhantomData)
                }
            }
        }
    });
    quote! {
        #[doc = #doc]
        pub struct Launcher<'a, #(#types),*>(
            ::tma_runtime::launch::TableInstance<'a>,
            ::core::marker::PhantomData<fn() -> (#(#types,)*)>,
        );

        impl<#(#types),*> ::core::marker::Copy for Launcher<'_, #(#types),*> {}

        impl<#(#types),*> ::core::clone::Clone for Launcher<'_, #(#types),*> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<#(#types),*> ::core::fmt::Debug for Launcher<'_, #(#types),*> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.0.spec().name)
            }
        }

        #typed

        impl<#(#bounded),*> Launcher<'_, #(#types),*> {
            /// Returns the specification of the instance.
            pub fn spec(&self) -> &'static ::tma_runtime::launch::KernelSpec {
                self.0.spec()
            }

            #[doc = #launch_doc]
            #[allow(clippy::too_many_arguments)]
            pub fn launch(
                &self,
                #on: impl #on_trait,
                #grid: impl ::core::convert::Into<::tma_runtime::launch::Grid>,
                #(#params),*
            ) -> ::core::result::Result<(), ::tma_runtime::Error> {
                #flags
                self.0.#launch(&#on, #grid.into(), &[#(#args),*], &[#(#flag_args),*])
            }
        }
    }
}
