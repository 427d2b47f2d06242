//! The load test with a few clients for a few seconds, as CI runs it.

use std::time::Duration;

use anyhow::Result;
use tma_generate::load;
use tma_load_test::{LoadOptions, run};
use tma_models::engine::EngineOptions;
use tma_models_reference::Reference;
use tma_runtime::Device;

#[tokio::test]
async fn answers_do_not_depend_on_other_clients() -> Result<()> {
    let folder = tempfile::tempdir()?;
    Reference::open("llama3")?.write(folder.path())?;
    let model = load::model(folder.path(), &Device::simulator(), None)?;
    let options = LoadOptions {
        clients: 8,
        duration: Duration::from_secs(3),
        requests: 6,
        most_tokens: 6,
        seed: 1,
        engine: EngineOptions {
            sequences: 4,
            context: 100,
            pages: Some(6),
            chunk: 64,
            queue: 3,
            reproducible: true,
        },
    };
    let report = run(model, options).await?;
    let counts = report.counts;
    assert!(counts.whole + counts.streams > 0 && counts.left > 0 && counts.refused > 0, "{counts:?}");
    assert_eq!(report.pages, [6, 6]);
    // The first tenth of a second, in which buffers grow, counts as well.
    if let Some([first, last]) = report.resident.ends() {
        assert!(last < first + (64 << 10), "{first} KiB grew to {last} KiB");
    }
    Ok(())
}
