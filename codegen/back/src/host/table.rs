//! The table of a kernel's instances: its types `Key` and `Launcher`, and the functions that make
//! and search it. The rest is in `tma_runtime::launch::Instances`.
//!
//! A kernel of a module that is made from a template has the template's `Key`. A library that
//! exports the template finds instances of both in the same way.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{GenericParam, ItemFn, Path};
use tma_front::ir::{Argument, Kernel};
use tma_front::parse::snake;

use super::added_params;
use super::generic::{Generics, Signature, argument, arguments};
use super::launcher::{host_type, launch_doc};

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
    let entries: Option<Vec<_>> = kernels.iter().map(|kernel| entry(kernel, &fields)).collect();
    let (Some(generics), Some(signature), Some(entries)) = (generics, signature, entries) else {
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
    let added_table = added.map(|(inputs, args)| {
        let doc = match &args[..] {
            [] => format!("Returns the table of all instances of `{path}`."),
            _ => format!(
                "Returns the table of all instances of `{path}`, for launchers of its template, with the \
                 arguments of functions that replace others."
            ),
        };
        let count = args.len();
        let lifetime = (!args.is_empty()).then(|| quote!(<'a>));
        let of = if args.is_empty() { quote!('static) } else { quote!('a) };
        quote! {
            #[doc = #doc]
            pub fn table #lifetime(#(#inputs),*) -> ::tma_runtime::launch::Instances<#of, self::Key> {
                let added: [::tma_runtime::launch::Arg<#of>; #count] = [#(#args),*];
                self::compiled().with(added)
            }
        }
    });
    let count = entries.len();
    quote! {
        #key
        #launcher

        fn compiled() -> &'static ::tma_runtime::launch::Instances<'static, self::Key> {
            static ENTRIES: [::tma_runtime::launch::InstanceEntry<self::Key>; #count] = {
                use ::core::any::TypeId;
                use ::tma_runtime::launch::InstanceEntry;
                [#(#entries),*]
            };
            static TABLE: ::tma_runtime::launch::Instances<'static, self::Key> =
                ::tma_runtime::launch::Instances::new(&self::INSTANCES, &ENTRIES);
            &TABLE
        }

        #[doc = #find_doc]
        pub fn find<#(#bounded),*>(
            key: self::Key,
        ) -> ::core::option::Option<self::Launcher<'static, #(#types),*>> {
            let instance = self::compiled().instance::<(#(#types,)*)>(key)?;
            ::core::option::Option::Some(self::Launcher(instance, ::core::marker::PhantomData))
        }

        #[doc = #keys_doc]
        pub fn keys<#(#bounded),*>() -> impl ::core::iter::Iterator<Item = self::Key> {
            self::compiled().keys_of::<(#(#types,)*)>()
        }

        #added_table
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
    Some(quote!(InstanceEntry::new(TypeId::of::<(#(#types,)*)>, self::Key { #(#consts),* })))
}

/// Generates the launcher. Tables find it only if it `passes_all` parameters itself.
fn launcher(kernel: &Kernel, generics: &Generics, signature: &Signature, passes_all: bool) -> TokenStream {
    let path = &kernel.name;
    let (types, bounded) = (&generics.types, &generics.bounded_types);
    let Signature { params, args, flag_args, flags } = signature;
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
                #on: impl ::tma_runtime::launch::LaunchOn,
                #grid: impl ::core::convert::Into<::tma_runtime::launch::Grid>,
                #(#params),*
            ) -> ::core::result::Result<(), ::tma_runtime::Error> {
                #flags
                self.0.launch(&#on, #grid.into(), &[#(#args),*], &[#(#flag_args),*])
            }
        }
    }
}
