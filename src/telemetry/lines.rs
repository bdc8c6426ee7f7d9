//! The form of log lines. docs/logs.md names their fields.
//!
//! While traces are exported, a line of a span that is sampled has its `trace_id` and `span_id`.

use std::fmt::{self, Debug, Write};

use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// For people.
#[derive(Debug)]
pub struct Text(Format<Full>);

impl Text {
    #[allow(deprecated, reason = "the text that a line is put together in knows of no terminal")]
    pub fn new(ansi: bool) -> Self {
        Self(Format::default().with_ansi(ansi))
    }
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some((trace, span)) = sampled() else { return self.0.format_event(context, writer, event) };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        writeln!(writer, "{} trace_id={trace} span_id={span}", line.trim_end_matches('\n'))
    }
}

/// One JSON object, without another one in it: an object's name is `name`, whether it comes from the line itself or from the pass that
/// the line is of.
#[derive(Debug)]
pub struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = Line::default();
        line.set("timestamp", time);
        line.set("level", event.metadata().level().as_str());
        line.set("target", event.metadata().target());
        line.set("message", "");
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<JsonFields>>().map_or("", |fields| fields.fields.as_str());
            let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
            fields.into_iter().for_each(|(name, value)| line.set(&name, value));
        }
        event.record(&mut line);
        if let Some((trace, span)) = sampled() {
            line.set("trace_id", trace);
            line.set("span_id", span);
        }
        writeln!(writer, "{}", line.text())
    }
}

/// The fields of a line, in order. A later one of the same name counts.
#[derive(Default)]
struct Line(Vec<(String, Value)>);

impl Line {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
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

    /// What comes by way of the crate `log` has the place that it comes from in fields.
    fn field(&mut self, field: &Field, value: impl Into<Value>) {
        match field.name() {
            "log.target" => self.set("target", value),
            name if name.starts_with("log.") => {}
            name => self.set(name, value),
        }
    }
}

impl Visit for Line {
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

/// The trace and the span that this thread is in, where it is exported.
fn sampled() -> Option<(String, String)> {
    Context::map_current(|context| {
        let span = context.span();
        let ids = span.span_context();
        (ids.is_valid() && ids.is_sampled()).then(|| (ids.trace_id().to_string(), ids.span_id().to_string()))
    })
}
