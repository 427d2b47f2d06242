//! Renders errors and warnings together with their source.

use crate::ir::Span;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::text::Text;
use super::{Diagnostic, Severity};

/// Renders errors and warnings as text, each with the lines of `source` that it concerns. `path` is
/// the displayed name of `source`. The spans must come from parsing `source` outside of a macro.
pub fn render<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>, path: &str, source: &str) -> String {
    let renderer = Renderer::plain();
    let shown = diagnostics.into_iter().map(|diagnostic| render_one(diagnostic, path, source, &renderer));
    shown.collect::<Vec<_>>().join("\n\n")
}

fn render_one(diagnostic: &Diagnostic, path: &str, source: &str, renderer: &Renderer) -> String {
    let Text { code, message, notes, help } = diagnostic.parts();
    let level = match code.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let code = code.to_string();
    let mut snippet = Snippet::source(source)
        .path(path)
        .annotation(AnnotationKind::Primary.span(byte_range(diagnostic.span, source)));
    for note in &notes {
        if let Some(span) = note.span {
            let location = AnnotationKind::Context.span(byte_range(span, source));
            snippet = snippet.annotation(location.label(&note.text));
        }
    }
    let mut group = level.primary_title(&message).id(&code).element(snippet);
    for note in notes.iter().filter(|note| note.span.is_none()) {
        group = group.element(Level::NOTE.message(&note.text));
    }
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(help));
    }
    let reference = diagnostic.reference();
    if let Some((name, rule)) = reference.as_ref().and_then(|reference| reference.split_once(": ")) {
        group = group.element(Level::NOTE.with_name(name).message(rule));
    }
    renderer.render(&[group])
}

/// Returns the byte range of `span` in `source`. The range is empty, at the end, if the span is
/// elsewhere.
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
