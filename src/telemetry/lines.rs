//! The format of log lines. docs/logs.md lists their fields.
//!
//! If traces are exported, a line in a sampled span has its `trace_id` and `span_id`.

use std::fmt::{self, Debug, Write};

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Format, Full, JsonFields, Writer, debug_fn};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::text::line;

/// Limit for one field, in bytes.
const LONGEST: usize = 16 * 1024;

/// Formats fields of the text format on one line, so that a name or a message cannot forge a log
/// line.
pub fn fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(write_field).delimited(" ")
}

fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let text = format!("{value:?}");
    let text = line(&text, LONGEST);
    match field.name() {
        "message" => write!(writer, "{text}"),
        name if name.starts_with("log.") => Ok(()),
        name => write!(writer, "{}={text}", name.trim_start_matches("r#")),
    }
}

/// The text format.
#[derive(Debug)]
pub struct Text(Format<Full>);

impl Text {
    #[allow(
        deprecated,
        reason = "the text that a line is put together in knows of no terminal"
    )]
    pub fn new(ansi: bool) -> Self {
        Self(Format::default().with_ansi(ansi))
    }
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some((trace, span)) = sampled() else {
            return self.0.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.0
            .format_event(context, Writer::new(&mut line), event)?;
        writeln!(
            writer,
            "{} trace_id={trace} span_id={span}",
            line.trim_end_matches('\n')
        )
    }
}

/// One flat JSON object. An object's name is always `name`, whether it comes from the line itself
/// or from its pass.
#[derive(Debug)]
pub struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = LogLine::default();
        line.set("timestamp", time);
        line.set("level", event.metadata().level().as_str());
        line.set("target", event.metadata().target());
        line.set("message", "");
        for span in context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            let extensions = span.extensions();
            let fields = extensions
                .get::<FormattedFields<JsonFields>>()
                .map_or("", |fields| fields.fields.as_str());
            let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
            fields
                .into_iter()
                .for_each(|(name, value)| line.set(&name, value));
        }
        event.record(&mut line);
        if let Some((trace, span)) = sampled() {
            line.set("trace_id", trace);
            line.set("span_id", span);
        }
        writeln!(writer, "{}", line.text())
    }
}

/// The fields of a line, in order. A later field replaces an earlier one with the same name.
#[derive(Default)]
struct LogLine(Vec<(String, Value)>);

impl LogLine {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = match value.into() {
            Value::String(text) => Value::String(line(&text, LONGEST).into_owned()),
            other => other,
        };
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    fn text(&self) -> String {
        let mut text = String::from("{");
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a String does not fail.
            let _ = write!(text, "{comma}{}:{value}", Value::from(name.as_str()));
        }
        text.push('}');
        text
    }

    /// Records from the crate `log` have their origin in fields.
    fn field(&mut self, field: &Field, value: impl Into<Value>) {
        match field.name() {
            "log.target" => self.set("target", value),
            name if name.starts_with("log.") => {}
            name => self.set(name, value),
        }
    }
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.field(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.field(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, value);
    }
}

/// The current trace and span of this thread, if it is exported.
fn sampled() -> Option<(String, String)> {
    Context::map_current(|context| {
        let span = context.span();
        let ids = span.span_context();
        (ids.is_valid() && ids.is_sampled())
            .then(|| (ids.trace_id().to_string(), ids.span_id().to_string()))
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::{info, info_span};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{Layer, Registry};

    use super::*;
    use crate::text::is_hidden;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool, log: impl FnOnce()) -> String {
        let written = Captured::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = if json {
            lines
                .fmt_fields(JsonFields::new())
                .event_format(Json)
                .boxed()
        } else {
            lines
                .fmt_fields(fields())
                .event_format(Text::new(false))
                .boxed()
        };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), log);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn nobody_writes_a_line_of_their_own() {
        let nasty = "a\n2026-01-01T00:00:00Z ERROR forged\u{1b}[2J\u{9b}\u{202e}\u{2028}";
        for json in [false, true] {
            let text = logged(json, || {
                let _pass = info_span!("pass", name = %nasty, error = nasty).entered();
                info!(id = %nasty, step = ?nasty, reason = nasty, key = 7, "told of {nasty}");
            });
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(!text.trim_end().chars().any(is_hidden), "{text:?}");
            assert!(
                text.contains("told of a 2026") && text.contains('7'),
                "{text}"
            );
        }
        let text = logged(false, || info!(reason = "a b", key = 7, "said"));
        assert!(text.ends_with("said reason=\"a b\" key=7\n"), "{text}");
    }

    #[test]
    fn a_field_is_bounded() {
        for json in [false, true] {
            let text = logged(json, || info!(id = %"x".repeat(1024 * 1024), "said"));
            assert!(text.len() < LONGEST + 300, "{}", text.len());
        }
    }
}
