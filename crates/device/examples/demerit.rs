//! Demerit figures.
fn main() {
    let root = std::env::var("SPINDLE_SHARED").unwrap_or_else(|_| "../shared".into());
    for drive in ["cheetah9LP", "atlas10k", "barracuda", "hp_c2247a", "dec_rz26"] {
        let folder = format!("{root}/data/drives/{drive}");
        let mut files = device::disksim::DriveFiles::default();
        let mut trace = Vec::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            if name.ends_with(".trace") {
                trace = device::disksim::parse_trace(&name, &text).unwrap();
            } else {
                files.files.push((name, text));
            }
        }
        let spec = device::disksim::import(&files).unwrap();
        let mut disk = device::Disk::new(spec).unwrap();
        let r = device::replay(&mut disk, &trace);
        let measured: Vec<_> = trace.iter().map(|e| e.service).collect();
        let mean =
            |v: &[units::Nanos]| v.iter().map(|n| n.0 as f64).sum::<f64>() / v.len() as f64 / 1e6;
        println!(
            "{drive:12} demerit {:.3} ms  mean {:.3} / {:.3}  cache {} oor {}",
            device::demerit_ms(&measured, &r.service),
            mean(&measured),
            mean(&r.service),
            r.from_cache,
            r.out_of_range
        );
        if std::env::var("DUMP").is_ok() {
            let mut out = String::new();
            for s in &r.service {
                out += &format!("{}\n", s.0 as f64 / 1e3);
            }
            std::fs::write(format!("/tmp/dev_{drive}.sim"), out).unwrap();
        }
    }
}
