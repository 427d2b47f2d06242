//! Host code shared by the instances of a generic kernel: a launcher that selects the instance by
//! the kernel's own generics.
//!
//! The kernel's module gets a type `Instance` with the kernel's generics, and a trait `Compiled`,
//! implemented for the instances in the attribute. `launch::<T, N>` requires the trait, as does a
//! generic host function in its `where` clause. The kernel's own bounds are not repeated here:
//! compiled instances satisfy them, which `expand/bounds.rs` has rustc check.

use std::collections::HashSet;

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{GenericParam, ItemFn};
use tma_front::ir::{Argument, Const, Kernel, Param, Presence, Scalar, TileType, Type};

use super::launcher::{
    Target, element, flags, host_names, host_type, is_argument, is_tiled, launch_doc, tiles_doc, tiles_of,
};

/// Generates the items for all of `kernels`, the instances of `function`. Generates nothing if
/// there are none, or if a generic stands for anything but an element type, a swizzle or a number,
/// which is of little use in kernels.
pub(crate) fn launcher(function: &ItemFn, kernels: &[&Kernel]) -> TokenStream {
    let Some(first) = kernels.first() else { return TokenStream::new() };
    let arguments: Option<Vec<_>> = kernels.iter().map(|kernel| arguments(kernel)).collect();
    let (Some(generics), Some(arguments)) = (Generics::of(function, kernels), arguments) else {
        return TokenStream::new();
    };
    let (declared, types) = (&generics.declared, &generics.types);
    let path = &first.name;
    let shown = |arguments: &[TokenStream]| {
        arguments.iter().map(ToTokens::to_token_stream).map(short).collect::<Vec<_>>().join(", ")
    };
    let listed: Vec<_> = kernels
        .iter()
        .zip(&arguments)
        .map(|(kernel, arguments)| {
            format!("`{}` = `<{}>`", kernel.instance.as_deref().unwrap_or_default(), shown(arguments))
        })
        .collect();
    let some = some_of(&listed);
    let listed = listed.join(", ");
    // If two instances differ only in name, the first one is selected.
    let mut known = HashSet::new();
    let distinct = kernels.iter().zip(&arguments).filter(|(_, arguments)| known.insert(shown(arguments)));
    let impls: Vec<_> = distinct.map(|(kernel, arguments)| implementation(kernel, arguments)).collect();
    let tiled: Vec<_> = first.params.iter().filter(|param| is_tiled(param)).collect();
    let declarations = tiled.iter().map(|param| {
        let signature = tiles_signature(param, &TokenStream::new());
        quote!(#[doc(hidden)] #signature;)
    });
    let instance_doc =
        format!("The instance of `{path}` with these generics; [`Compiled`] if the attribute names it.");
    let compiled_doc =
        format!("That the attribute names an instance of `{path}`. Its instances are {listed}.");
    let message = format!("`{path}` is not compiled for these generics: `{{Self}}`");
    let note = format!("its instances are {some}; name another in the attribute");
    let generic_note = format!(
        "a generic function asks its caller for one: `where {path}::Instance<{}>: {path}::Compiled`",
        generics.names.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ")
    );
    let launch = generics.launch(kernels);
    let tiles = tiled.iter().map(|param| generics.tiles(path, param));
    quote! {
        #[doc = #instance_doc]
        pub struct Instance<#(#declared),*>(::core::marker::PhantomData<fn() -> (#(#types,)*)>);

        trait Sealed {}

        #[doc = #compiled_doc]
        #[allow(private_bounds)]
        #[diagnostic::on_unimplemented(message = #message, label = "no such instance", note = #note, note = #generic_note)]
        pub trait Compiled: Sealed {
            /// The specification that launches of the instance need.
            const SPEC: &'static ::tma_runtime::launch::KernelSpec;
            #(#declarations)*
        }

        #(#impls)*
        #launch
        #(#tiles)*
    }
}

/// Returns as many names as are readable in an error of rustc. A product may have generated
/// hundreds.
fn some_of(listed: &[String]) -> String {
    const SHOWN: usize = 8;
    match listed.len().checked_sub(SHOWN) {
        None | Some(0) => listed.join(", "),
        Some(more) => format!("{} and {more} more", listed[..SHOWN].join(", ")),
    }
}

/// The generics of a kernel, as seen by the host.
pub(super) struct Generics {
    names: Vec<Ident>,
    /// The type generics.
    pub(super) types: Vec<Ident>,
    /// The declarations of type generics with the bounds that a launch needs.
    pub(super) bounded_types: Vec<TokenStream>,
    /// The declarations: `T`, `const N: u32`.
    declared: Vec<TokenStream>,
    /// The declarations with the bounds that a launch needs.
    bounded: Vec<TokenStream>,
    /// The identifiers in each parameter's type.
    mentioned: Vec<HashSet<String>>,
    /// The generics that are an element type in every instance, with these types.
    pub(super) elements: Vec<(String, Vec<Scalar>)>,
}

/// The parameters of a launcher, and its arguments for the kernel.
pub(super) struct Signature {
    pub(super) params: Vec<TokenStream>,
    /// The arguments for the parameters of the kernel's signature.
    pub(super) args: Vec<TokenStream>,
    /// The arguments that say of each optional slice whether it is there.
    pub(super) flag_args: Vec<TokenStream>,
    /// The statements that set the variables of these arguments.
    pub(super) flags: TokenStream,
}

impl Generics {
    pub(super) fn of(function: &ItemFn, kernels: &[&Kernel]) -> Option<Self> {
        let mut generics = Self {
            names: vec![],
            types: vec![],
            bounded_types: vec![],
            declared: vec![],
            bounded: vec![],
            mentioned: function.sig.inputs.iter().map(identifiers).collect(),
            elements: vec![],
        };
        for (i, param) in function.sig.generics.params.iter().enumerate() {
            let all: Option<Vec<_>> = kernels.iter().map(|kernel| kernel.arguments.get(i).copied()).collect();
            match (param, &all?[..]) {
                (GenericParam::Const(param), [Argument::Const(_, scalar), ..]) => {
                    let (name, ty) = (&param.ident, host_type(*scalar));
                    generics.names.push(name.clone());
                    generics.declared.push(quote!(const #name: #ty));
                    generics.bounded.push(quote!(const #name: #ty));
                }
                (GenericParam::Type(param), all) => {
                    let name = &param.ident;
                    generics.names.push(name.clone());
                    generics.types.push(name.clone());
                    generics.declared.push(quote!(#name));
                    let elements = all.iter().map(|argument| match argument {
                        Argument::Element(scalar) => Some(*scalar),
                        Argument::Const(..) | Argument::Swizzle(_) | Argument::Other => None,
                    });
                    match elements.collect::<Option<Vec<_>>>() {
                        Some(elements) => {
                            generics.bounded.push(quote!(#name: ::tma_runtime::Scalar));
                            generics.bounded_types.push(quote!(#name: ::tma_runtime::Scalar));
                            generics.elements.push((name.to_string(), elements));
                        }
                        None => {
                            generics.bounded.push(quote!(#name));
                            generics.bounded_types.push(quote!(#name: 'static));
                        }
                    }
                }
                (GenericParam::Const(_) | GenericParam::Lifetime(_), _) => return None,
            }
        }
        (!generics.names.is_empty()).then_some(generics)
    }

    /// Returns the type of the instance with these generics.
    fn instance(&self) -> TokenStream {
        // In braces, a name is a constant even if it is that of a crate.
        let arguments = self.names.iter().map(|name| match self.types.contains(name) {
            true => quote!(#name),
            false => quote!({ #name }),
        });
        quote!(self::Instance<#(#arguments),*>)
    }

    /// Returns a name for an additional parameter of the launcher. The name of a const generic
    /// would be a pattern that matches the constant.
    fn parameter(&self, name: &str) -> Ident {
        let mut name = name.to_owned();
        while self.names.iter().any(|generic| *generic == name) {
            name.push('_');
        }
        Ident::new(&name, Span::mixed_site())
    }

    /// Generates the launcher, unless the instances' parameters differ in form.
    fn launch(&self, kernels: &[&Kernel]) -> Option<TokenStream> {
        let first = kernels.first()?;
        let Signature { params, args, flag_args, flags } = self.signature(kernels)?;
        let target = Target::of(first);
        let [on, grid] = ["on", "grid"].map(|name| self.parameter(name));
        let (bounded, instance) = (&self.bounded, self.instance());
        let doc = launch_doc(&first.name);
        let on_trait = target.on();
        let spec = quote!(<#instance as self::Compiled>::SPEC);
        let call = target.launch(&on, &spec, &grid, &quote!(#(#args,)* #(#flag_args),*));
        Some(quote! {
            #[doc = #doc]
            #[allow(clippy::too_many_arguments)]
            pub fn launch<#(#bounded),*>(
                #on: impl #on_trait,
                #grid: impl ::core::convert::Into<::tma_runtime::launch::Grid>,
                #(#params),*
            ) -> ::core::result::Result<(), ::tma_runtime::Error>
            where
                #instance: self::Compiled,
            {
                #flags
                #call
            }
        })
    }

    /// Returns the parameters and arguments of a launcher for all instances, or `None` if the
    /// instances' parameters differ in form.
    pub(super) fn signature(&self, kernels: &[&Kernel]) -> Option<Signature> {
        let first = kernels.first()?;
        let target = Target::of(first);
        let differs =
            |kernel: &&Kernel| kernel.params.len() != first.params.len() || Target::of(kernel) != target;
        if kernels.iter().any(differs) {
            return None;
        }
        let names = host_names(&first.params);
        let flags = flags(&first.params, &names);
        let mut signature = Signature { params: vec![], args: vec![], flag_args: vec![], flags };
        for (i, (param, name)) in first.params.iter().zip(&names).enumerate() {
            if !is_argument(param) {
                continue;
            }
            let all: Vec<_> = kernels.iter().map(|kernel| &kernel.params[i]).collect();
            let element = self.element(i, &all)?;
            if all.iter().any(|other| form(other) != form(param)) {
                return None;
            }
            // A parameter is written if any instance writes it.
            let param = Param { written: all.iter().any(|other| other.written), ..param.clone() };
            let arg = target.arg(&param, name);
            if matches!(param.presence, Presence::FlagOf(_)) {
                signature.flag_args.push(arg);
            } else {
                signature.params.push(target.param(&param, name, &element));
                signature.args.push(arg);
            }
        }
        Some(signature)
    }

    /// Returns the element type of parameter `i`: the generic in its declared type, if that is the
    /// element type in every instance, or a type that all instances share. The tokens are empty for
    /// a parameter without elements. Returns `None` if the instances differ.
    fn element(&self, i: usize, params: &[&Param]) -> Option<TokenStream> {
        let Some(found) = params.iter().map(|param| element(param)).collect::<Option<Vec<_>>>() else {
            return Some(TokenStream::new());
        };
        let generic = self.elements.iter().find(|(name, elements)| {
            self.mentioned.get(i).is_some_and(|mentioned| mentioned.contains(name)) && *elements == found
        });
        let first = *found.first()?;
        match generic {
            Some((name, _)) => {
                let name = format_ident!("{name}");
                Some(quote!(#name))
            }
            None => found.iter().all(|element| *element == first).then(|| host_type(first)),
        }
    }

    /// Generates the function for the grid of one of the maps.
    fn tiles(&self, path: &str, param: &Param) -> TokenStream {
        let (declared, instance) = (&self.declared, self.instance());
        let (doc, name) = (tiles_doc(path, param), tiles_of(param));
        let signature = tiles_signature(param, &quote!(<#(#declared),*>));
        quote! {
            #[doc = #doc]
            pub #signature
            where
                #instance: self::Compiled,
            {
                <#instance as self::Compiled>::#name(shape)
            }
        }
    }
}

/// Generates the impl that marks an instance as compiled, and refers to the items of its module.
fn implementation(kernel: &Kernel, arguments: &[TokenStream]) -> TokenStream {
    let module = kernel.instance.as_ref().map(|name| format_ident!("{name}"));
    let tiles = kernel.params.iter().filter(|param| is_tiled(param)).map(|param| {
        let (name, signature) = (tiles_of(param), tiles_signature(param, &TokenStream::new()));
        quote!(#signature { #module::#name(shape) })
    });
    quote! {
        impl Sealed for Instance<#(#arguments),*> {}

        impl Compiled for Instance<#(#arguments),*> {
            const SPEC: &'static ::tma_runtime::launch::KernelSpec = &#module::SPEC;
            #(#tiles)*
        }
    }
}

fn tiles_signature(param: &Param, generics: &TokenStream) -> TokenStream {
    let (name, rank) = (tiles_of(param), param.ty.moved().map_or(0, TileType::rank));
    quote!(fn #name #generics(shape: [::core::primitive::usize; #rank]) -> ::tma_runtime::launch::Grid)
}

/// Returns the arguments of an instance's generics, as paths that resolve anywhere.
pub(super) fn arguments(kernel: &Kernel) -> Option<Vec<TokenStream>> {
    kernel.instance.as_ref()?;
    kernel.arguments.iter().map(argument).collect()
}

/// Returns the argument of one generic, as [`arguments`] does.
pub(super) fn argument(argument: &Argument) -> Option<TokenStream> {
    match argument {
        Argument::Const(Const::Int(value), _) => {
            let digits = Literal::i128_unsuffixed(value.saturating_abs());
            let sign = (*value < 0).then(|| quote!(-));
            Some(quote!(#sign #digits))
        }
        Argument::Const(Const::Bool(value), _) => Some(quote!(#value)),
        Argument::Element(scalar) => Some(host_type(*scalar)),
        Argument::Swizzle(swizzle) => {
            let name = format_ident!("{}", swizzle.name());
            Some(quote!(::tma_runtime::lang::#name))
        }
        Argument::Const(Const::Float(_) | Const::Literal { .. }, _) | Argument::Other => None,
    }
}

/// Returns the form of a parameter on the host, without its element type: the variant, the number
/// of dimensions, and whether it is optional.
fn form(param: &Param) -> (std::mem::Discriminant<Type>, Option<usize>, Presence) {
    (std::mem::discriminant(&param.ty), param.ty.moved().map(TileType::rank), param.presence)
}

/// Formats the last name of a path, or a number, the way users write it.
fn short(tokens: TokenStream) -> String {
    let text = tokens.to_string();
    text.rsplit("::").next().unwrap_or_default().replace(' ', "")
}

fn identifiers(tokens: impl ToTokens) -> HashSet<String> {
    fn collect(tokens: TokenStream, found: &mut HashSet<String>) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => drop(found.insert(name.to_string())),
                TokenTree::Group(group) => collect(group.stream(), found),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    let mut found = HashSet::new();
    collect(tokens.to_token_stream(), &mut found);
    found
}
