//! Metrics of this process: its version, leadership, resource usage and runtime.

use std::fmt::Error;
use std::sync::{Arc, OnceLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::runtime::Handle;

use super::left::LEADER;
use crate::leadership::Leadership;

pub(super) fn register(registry: &mut Registry, leadership: Arc<OnceLock<Leadership>>) {
    let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The program that runs", build);
    registry.register_collector(Box::new(Leads(leadership)));
}

#[derive(Debug)]
struct Leads(Arc<OnceLock<Leadership>>);

impl Collector for Leads {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        let leads = self.0.get().is_some_and(Leadership::holds);
        let text = "1 where this process is the leader, and acts; 0 where it waits for the lead";
        gauge(&mut encoder, LEADER, text, None, &u32::from(leads))
    }
}

/// Uses the standard names of Prometheus client libraries.
#[derive(Debug)]
pub(super) struct ProcessMetrics;

impl Collector for ProcessMetrics {
    #[cfg(target_os = "linux")]
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        // Without /proc there are no values.
        let Ok(taken) = linux::taken() else {
            return Ok(());
        };
        let text = "Processor time that the process has used";
        let mut cpu = encoder.encode_descriptor(
            "process_cpu",
            text,
            Some(&Unit::Seconds),
            MetricType::Counter,
        )?;
        cpu.encode_counter::<NoLabelSet, _, u64>(&taken.cpu_seconds, None)?;
        let (bytes, seconds) = (Unit::Bytes, Unit::Seconds);
        let text = "Memory of the process that is in RAM";
        gauge(
            &mut encoder,
            "process_resident_memory",
            text,
            Some(&bytes),
            &taken.resident_bytes,
        )?;
        gauge(
            &mut encoder,
            "process_open_fds",
            "Open file descriptors",
            None,
            &taken.open_fds,
        )?;
        gauge(
            &mut encoder,
            "process_max_fds",
            "Most file descriptors that may be open",
            None,
            &taken.max_fds,
        )?;
        gauge(
            &mut encoder,
            "process_threads",
            "Threads of the operating system",
            None,
            &taken.threads,
        )?;
        let text = "When the process began, in seconds since 1970";
        gauge(
            &mut encoder,
            "process_start_time",
            text,
            Some(&seconds),
            &taken.began,
        )
    }

    #[cfg(not(target_os = "linux"))]
    fn encode(&self, _: DescriptorEncoder) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use procfs::process::{LimitValue, Process};
    use procfs::{ProcResult, boot_time_secs, page_size, ticks_per_second};

    /// The resource usage of the process.
    pub(super) struct ProcessFigures {
        pub cpu_seconds: f64,
        pub resident_bytes: u64,
        pub open_fds: usize,
        pub max_fds: f64,
        pub threads: i64,
        pub began: f64,
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "no number of ticks or files is as large"
    )]
    pub(super) fn taken() -> ProcResult<ProcessFigures> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let seconds = |ticks: u64| ticks as f64 / ticks_per_second() as f64;
        Ok(ProcessFigures {
            cpu_seconds: seconds(stat.utime + stat.stime),
            resident_bytes: stat.rss * page_size(),
            open_fds: process.fd_count()?,
            max_fds: match process.limits()?.max_open_files.soft_limit {
                LimitValue::Value(most) => most as f64,
                LimitValue::Unlimited => f64::INFINITY,
            },
            threads: stat.num_threads,
            began: boot_time_secs()? as f64 + seconds(stat.starttime),
        })
    }
}

/// The runtime that collects the metrics.
#[derive(Debug)]
pub(super) struct Runtime;

impl Collector for Runtime {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        let Ok(runtime) = Handle::try_current().map(|handle| handle.metrics()) else {
            return Ok(());
        };
        let text = "Threads that run tasks";
        gauge(
            &mut encoder,
            "tokio_workers",
            text,
            None,
            &runtime.num_workers(),
        )?;
        let text = "Tasks that have not ended";
        gauge(
            &mut encoder,
            "tokio_alive_tasks",
            text,
            None,
            &runtime.num_alive_tasks(),
        )?;
        let text = "Tasks that wait for a thread and belong to none yet";
        gauge(
            &mut encoder,
            "tokio_global_queue_depth",
            text,
            None,
            &runtime.global_queue_depth(),
        )
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    value: &impl EncodeGaugeValue,
) -> Result<(), Error> {
    encoder
        .encode_descriptor(name, help, unit, MetricType::Gauge)?
        .encode_gauge(value)
}
