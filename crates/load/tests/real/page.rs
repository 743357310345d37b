//! What there is, is documented.

use workload::EngineKind;

#[test]
fn every_engine_has_its_line_in_the_guide() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/workloads/engine.md");
    let text = std::fs::read_to_string(guide).unwrap();
    for engine in EngineKind::ALL {
        assert!(text.contains(&format!("\n| `{engine}` |")), "{engine} is not in {guide}");
    }
}
