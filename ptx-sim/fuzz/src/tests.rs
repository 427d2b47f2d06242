//! Some hundred inputs for each target: that it compiles, runs, and reaches what it is meant for.

use arbitrary::{Arbitrary, Unstructured};

use crate::launch::Launch;
use crate::{command, corpus, draw, maps, ptx, text};

#[test]
fn the_corpus_loads_and_changed_texts_are_refused_or_run() {
    let texts: Vec<_> = corpus::all().collect();
    assert!(texts.iter().all(|text| ptx::run(text.as_bytes())));
    let changed =
        (0..300).filter_map(|seed| text::changed(texts[seed % texts.len()].as_bytes(), seed as u64));
    let loaded = changed.filter(|text| ptx::run(text.as_bytes())).count();
    assert!((30..270).contains(&loaded), "{loaded} of 300 texts load");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    for seed in 0..300 {
        let mut bytes = b".version 8.0\n.target sm_90a\n.address_size 64\n".to_vec();
        assert!(ptx::run(&bytes));
        bytes.extend(draw::noise(seed, 1 + seed as usize));
        assert!(!ptx::run(&bytes), "seed {seed}");
    }
}

#[test]
fn many_launches_run_and_many_are_refused() {
    let launches = (0..600).filter_map(|seed| {
        let numbers = draw::noise(seed, 512);
        Launch::arbitrary(&mut Unstructured::new(&numbers)).ok()
    });
    let ran = launches.filter(|launch| format!("{launch:?}").starts_with("Launch")).map(Launch::run);
    let ran = ran.filter(|&ran| ran).count();
    assert!((200..500).contains(&ran), "{ran} of 600 run");
}

#[test]
fn valid_maps_pass_and_invalid_maps_mostly_fail() {
    let numbers = draw::noise(3, 1 << 18);
    let u = &mut Unstructured::new(&numbers);
    for rank in (1..=5).cycle().take(1000) {
        let map = maps::sound(1 << 36, 1 << 14, rank, u).expect("there are numbers left");
        assert_eq!(map.check(), Ok(()), "{map:#?}");
    }
    let mut any = || maps::any(1 << 36, 1 << 14, u).expect("there are numbers left");
    let passed = (0..1000).filter(|_| any().check().is_ok()).count();
    assert!((200..800).contains(&passed), "{passed} of 1000 pass");
}

#[test]
fn options_and_files_are_understood_until_they_are_changed() {
    let options = include_bytes!("../seeds/command/options.txt");
    let file = include_bytes!("../seeds/command/array.npy");
    assert!(command::run(options) && command::run(file));
    let understood = |seed: &u64| {
        let options = text::changed(options, *seed).expect("the options are text");
        let numbers = draw::noise(*seed, 2);
        let mut file = file.to_vec();
        // Within the header, which ends at 128.
        file[usize::from(numbers[0]) % 128] = numbers[1];
        (command::run(options.as_bytes()), command::run(&file)) == (true, true)
    };
    let count = (0..300).filter(understood).count();
    assert!((1..200).contains(&count), "{count} of 300 are understood");
}
