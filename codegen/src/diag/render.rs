//! Shows errors with the source they are about.

use crate::ir::Span;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::Diagnostic;

/// The errors as text, each with the lines of `source` that it is about. `path` is what `source` is called.
/// The spans must come from parsing `source` outside of a macro.
pub fn render(errors: &[Diagnostic], path: &str, source: &str) -> String {
    let renderer = Renderer::plain();
    let shown: Vec<_> = errors.iter().map(|error| render_one(error, path, source, &renderer)).collect();
    shown.join("\n\n")
}

fn render_one(error: &Diagnostic, path: &str, source: &str, renderer: &Renderer) -> String {
    let code = error.code.to_string();
    let snippet = Snippet::source(source)
        .path(path)
        .annotation(AnnotationKind::Primary.span(byte_range(error.span, source)));
    let mut group = Level::ERROR.primary_title(&error.message).id(&code).element(snippet);
    if let Some(help) = &error.help {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group])
}

/// Where `span` stands in `source`; empty, at the end, if it stands elsewhere.
fn byte_range(span: Span, source: &str) -> std::ops::Range<usize> {
    let (start, end) = (span.start(), span.end());
    let offset = |at: proc_macro2::LineColumn| {
        let line = source.split_inclusive('\n').take(at.line.saturating_sub(1)).map(str::len).sum::<usize>();
        let rest = source.get(line..).unwrap_or_default();
        line + rest.chars().take(at.column).map(char::len_utf8).sum::<usize>()
    };
    let start = offset(start).min(source.len());
    start..offset(end).clamp(start, source.len())
}
