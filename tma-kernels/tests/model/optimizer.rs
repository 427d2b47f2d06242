//! AdamW and the norm of gradients, step by step.

use tma_kernels::model::ModelError;
use tma_kernels::optimizer::{
    AdamW, AdamWOptions, Parameter, ParameterLayout, StepOptions, Weights, sum_squares,
};
use tma_runtime::prelude::*;

use crate::rows::{Element, check, numbers};

/// One element, a part of a vector, a whole unit, several chunks with and without a part of a vector
/// at the end, and no elements.
const LENS: [usize; 6] = [1, 7, 64, 16384 * 2, 0, 16384 + 1027];

const RATE: f32 = 0.01;

fn parameters() -> Vec<Parameter> {
    let of = |(i, len): (usize, usize)| Parameter {
        len,
        weight_decay: [0.0, 0.1, 0.01][i % 3],
        rate_factor: [1.0, 0.5][i % 2],
    };
    LENS.into_iter().enumerate().map(of).collect()
}

/// Parameters, gradients and moments on the device, with NaNs between the parameters.
struct Model<P, G> {
    device: Device,
    layout: ParameterLayout,
    parameters: DeviceTensor<P, 1>,
    masters: Option<DeviceTensor<f32, 1>>,
    firsts: DeviceTensor<f32, 1>,
    seconds: DeviceTensor<f32, 1>,
    gradients: DeviceTensor<G, 1>,
    sums: DeviceTensor<f64, 1>,
}

/// The parameters and moments of a model at a time, on the host.
#[derive(Clone)]
struct Snapshot<P> {
    parameters: Vec<P>,
    weights: Vec<f64>,
    firsts: Vec<f32>,
    seconds: Vec<f32>,
}

impl<P: Element> Snapshot<P> {
    fn bits(&self) -> Vec<u64> {
        let parameters = self.parameters.iter().map(|x| x.value());
        let moments = self.firsts.iter().chain(&self.seconds).copied().map(f64::from);
        parameters.chain(moments).chain(self.weights.iter().copied()).map(f64::to_bits).collect()
    }
}

impl<P: Element, G: Element> Model<P, G> {
    fn new(device: &Device, has_masters: bool) -> Result<Self, ModelError> {
        let layout = ParameterLayout::new(device, &parameters())?;
        let len = layout.len();
        let masters = in_ranges(&layout, &numbers::<f32>(1, len, 1.0));
        let rounded: Vec<P> = masters.iter().map(|x| P::of(f64::from(*x))).collect();
        let zeros = in_ranges(&layout, &vec![0.0_f32; len]);
        Ok(Self {
            device: device.clone(),
            parameters: device.tensor(&rounded, [len])?,
            masters: has_masters.then(|| device.tensor(&masters, [len])).transpose()?,
            firsts: device.tensor(&zeros, [len])?,
            seconds: device.tensor(&zeros, [len])?,
            gradients: device.zeros([len])?,
            sums: device.zeros([layout.sums()])?,
            layout,
        })
    }

    fn snapshot(&self) -> Result<Snapshot<P>, Error> {
        let parameters = self.parameters.to_vec()?;
        let weights = match &self.masters {
            Some(masters) => masters.to_vec()?.into_iter().map(f64::from).collect(),
            None => parameters.iter().map(|x| x.value()).collect(),
        };
        Ok(Snapshot { parameters, weights, firsts: self.firsts.to_vec()?, seconds: self.seconds.to_vec()? })
    }

    fn set_gradients(&mut self, gradients: &[G]) -> Result<(), Error> {
        self.gradients.copy_from(&in_ranges(&self.layout, gradients))
    }

    fn step(&mut self, optimizer: &mut AdamW, options: StepOptions<'_>) -> Result<(), ModelError> {
        let device = self.device.clone();
        self.step_on(&device, optimizer, options)
    }

    fn step_on(
        &mut self,
        on: &impl tma_runtime::launch::LaunchOn,
        optimizer: &mut AdamW,
        options: StepOptions<'_>,
    ) -> Result<(), ModelError> {
        sum_squares(on, &self.layout, &self.gradients, &mut self.sums)?;
        optimizer.begin_step(on, StepOptions { squares: Some(self.sums.view()), ..options })?;
        let weights = Weights {
            parameters: self.parameters.view_mut(),
            masters: self.masters.as_mut().map(DeviceTensor::view_mut),
            firsts: self.firsts.view_mut(),
            seconds: self.seconds.view_mut(),
        };
        optimizer.update(on, &self.layout, weights, &self.gradients)
    }
}

/// Returns the elements of the parameters, with NaNs in between.
fn in_ranges<T: Element>(layout: &ParameterLayout, all: &[T]) -> Vec<T> {
    let mut with_gaps = vec![T::of(f64::NAN); layout.len()];
    for range in layout.ranges() {
        with_gaps[range.clone()].copy_from_slice(&all[range.clone()]);
    }
    with_gaps
}

fn norm_of<G: Element>(layout: &ParameterLayout, gradients: &[G]) -> f64 {
    let of_range =
        |range: &std::ops::Range<usize>| gradients[range.clone()].iter().map(|x| x.value().powi(2));
    layout.ranges().iter().flat_map(of_range).sum::<f64>().sqrt()
}

/// The formula in f64, from what was there before a step.
struct Formula {
    options: AdamWOptions,
    rate: f64,
    step: i32,
    factor: f64,
}

impl Formula {
    /// Checks a step of all parameters, each number with a bound of some roundings of its terms.
    #[track_caller]
    fn check<P: Element, G: Element>(
        &self,
        ranges: &[std::ops::Range<usize>],
        gradients: &[G],
        [before, after]: [&Snapshot<P>; 2],
    ) {
        let [beta1, beta2, epsilon] =
            [self.options.beta1, self.options.beta2, self.options.epsilon].map(f64::from);
        let rounding = 2f64.powi(-22);
        for (range, parameter) in ranges.iter().zip(parameters()) {
            let rate = self.rate * f64::from(parameter.rate_factor);
            let decay = rate * f64::from(parameter.weight_decay);
            for i in range.clone() {
                let g = gradients[i].value() * self.factor;
                let first = beta1 * f64::from(before.firsts[i]) + (1.0 - beta1) * g;
                let second = beta2 * f64::from(before.seconds[i]) + (1.0 - beta2) * g * g;
                let terms = beta1 * f64::from(before.firsts[i]).abs() + (1.0 - beta1) * g.abs();
                check(after.firsts[i], first, 0.0, terms * rounding + 1e-44);
                check(after.seconds[i], second, rounding, 1e-44);
                let divisor = (second / (1.0 - beta2.powi(self.step))).sqrt() + epsilon;
                let change = 1.0 / (1.0 - beta1.powi(self.step)) / divisor;
                let weight = before.weights[i];
                let wanted = weight - rate * first * change - decay * weight;
                let bound = 4.0 * rounding * rate * (terms + first.abs()) * change
                    + rounding * weight.abs() * (0.5 + decay);
                match before.parameters[i].value() == weight {
                    true if after.parameters[i].value() == after.weights[i] => {
                        check(after.parameters[i], wanted, 0.0, bound);
                    }
                    _ => {
                        check(after.weights[i] as f32, wanted, 0.0, bound);
                        assert_eq!(after.parameters[i], P::of(after.weights[i]), "rounded once");
                    }
                }
            }
        }
    }
}

#[track_caller]
fn steps_in_a_row<P: Element, G: Element>(has_masters: bool, max_norm: f32) -> Result<(), ModelError> {
    let device = Device::simulator();
    let mut model = Model::<P, G>::new(&device, has_masters)?;
    let options = AdamWOptions { beta1: 0.8, beta2: 0.95, epsilon: 1e-6 };
    let mut optimizer = AdamW::new(&device, options, RATE)?;
    for step in 1..=3 {
        let gradients = numbers::<G>(10 + step, model.layout.len(), 0.3 * step as f64);
        model.set_gradients(&gradients)?;
        let before = model.snapshot()?;
        model.step(&mut optimizer, StepOptions { max_norm, ..Default::default() })?;
        let wanted = norm_of(&model.layout, &gradients);
        check(optimizer.norm()?, wanted, 2f64.powi(-22), 0.0);
        let factor = (f64::from(max_norm) / wanted).min(1.0);
        let formula = Formula { options, rate: f64::from(RATE), step: step as i32, factor };
        formula.check(model.layout.ranges(), &gradients, [&before, &model.snapshot()?]);
        assert_eq!(optimizer.steps()?, step as u32);
    }
    Ok(())
}

#[test]
fn every_instance() -> Result<(), ModelError> {
    const NONE: f32 = f32::INFINITY;
    steps_in_a_row::<bf16, bf16>(true, NONE)?;
    steps_in_a_row::<bf16, f16>(true, 1.5)?;
    steps_in_a_row::<bf16, f32>(false, NONE)?;
    steps_in_a_row::<f16, bf16>(false, NONE)?;
    steps_in_a_row::<f16, f16>(true, NONE)?;
    steps_in_a_row::<f16, f32>(true, 1.5)?;
    steps_in_a_row::<f32, bf16>(false, 1.5)?;
    steps_in_a_row::<f32, f16>(false, NONE)?;
    steps_in_a_row::<f32, f32>(false, NONE)?;
    steps_in_a_row::<f32, f32>(true, 1e9) // a limit that no norm reaches
}

/// Returns a model of `f32` after a step, and its optimiser.
fn begun(device: &Device) -> Result<(Model<f32, f32>, AdamW), ModelError> {
    let mut model = Model::<f32, f32>::new(device, false)?;
    let mut optimizer = AdamW::new(device, AdamWOptions::default(), RATE)?;
    model.set_gradients(&numbers::<f32>(20, model.layout.len(), 1.0))?;
    model.step(&mut optimizer, StepOptions::default())?;
    Ok((model, optimizer))
}

#[test]
fn a_step_with_a_gradient_that_is_not_finite_is_skipped() -> Result<(), ModelError> {
    let device = Device::simulator();
    let (mut model, mut optimizer) = begun(&device)?;
    let before = model.snapshot()?;
    let good = numbers::<f32>(21, model.layout.len(), 1.0);
    // In a vector, at the end of a chunk, and in an element of its own.
    for (count, (parameter, at, value)) in
        [(3, 5, f32::NAN), (3, 16383, f32::INFINITY), (0, 0, f32::NEG_INFINITY), (5, 16384 + 1026, f32::NAN)]
            .into_iter()
            .enumerate()
    {
        let mut bad = good.clone();
        bad[model.layout.ranges()[parameter].start + at] = value;
        model.set_gradients(&bad)?;
        model.step(&mut optimizer, StepOptions { max_norm: 1.0, ..Default::default() })?;
        assert!(model.snapshot()?.bits() == before.bits(), "{value} at {at} of {parameter}");
        assert_eq!((optimizer.steps()?, optimizer.skipped()?), (1, count as u32 + 1));
        assert!(!optimizer.norm()?.is_finite());
    }
    model.set_gradients(&good)?;
    model.step(&mut optimizer, StepOptions { max_norm: 1.0, ..Default::default() })?;
    let factor = 1.0 / norm_of(&model.layout, &good);
    let formula = Formula { options: AdamWOptions::default(), rate: f64::from(RATE), step: 2, factor };
    formula.check(model.layout.ranges(), &good, [&before, &model.snapshot()?]);
    assert_eq!((optimizer.steps()?, optimizer.skipped()?), (2, 4));
    Ok(())
}

/// Squares that overflow in f32, that underflow, and one that is great among others.
#[test]
fn norms_of_all_finite_gradients() -> Result<(), ModelError> {
    let device = Device::simulator();
    for (size, spike) in
        [(1e30, 0.0), (1e-30, 0.0), (1e-41, 0.0), (1.0, 0.0), (1.0, 3e38), (0.0, 0.0), (0.0, 1e-45)]
    {
        let (mut model, mut optimizer) = begun(&device)?;
        let mut gradients = numbers::<f32>(22, model.layout.len(), size);
        gradients[model.layout.ranges()[5].start + 777] += spike;
        model.set_gradients(&gradients)?;
        let before = model.snapshot()?;
        model.step(&mut optimizer, StepOptions { max_norm: 2.0, ..Default::default() })?;
        let wanted = norm_of(&model.layout, &gradients);
        check(optimizer.norm()?, wanted, 2f64.powi(-22), 1e-45);
        let factor = (2.0 / wanted).min(1.0);
        let formula = Formula { options: AdamWOptions::default(), rate: f64::from(RATE), step: 2, factor };
        formula.check(model.layout.ranges(), &gradients, [&before, &model.snapshot()?]);
    }
    Ok(())
}

/// Without sums there is no norm: a step is taken with any gradients, which only their factor
/// changes.
#[test]
fn a_step_without_a_norm() -> Result<(), ModelError> {
    let device = Device::simulator();
    let (mut model, mut optimizer) = begun(&device)?;
    let before = model.snapshot()?;
    let gradients = numbers::<f32>(23, model.layout.len(), 1000.0);
    model.set_gradients(&gradients)?;
    let options = StepOptions { gradient_factor: 1.0 / 1024.0, max_norm: 1e-3, ..Default::default() };
    optimizer.begin_step(&device, options)?;
    let weights = Weights {
        parameters: model.parameters.view_mut(),
        masters: None,
        firsts: model.firsts.view_mut(),
        seconds: model.seconds.view_mut(),
    };
    optimizer.update(&device, &model.layout, weights, &model.gradients)?;
    let factor = 1.0 / 1024.0;
    let formula = Formula { options: AdamWOptions::default(), rate: f64::from(RATE), step: 2, factor };
    formula.check(model.layout.ranges(), &gradients, [&before, &model.snapshot()?]);
    assert_eq!(optimizer.norm()?, 0.0);
    Ok(())
}

#[test]
fn the_factor_of_gradients_is_part_of_their_norm() -> Result<(), ModelError> {
    let device = Device::simulator();
    let (mut model, mut optimizer) = begun(&device)?;
    let before = model.snapshot()?;
    let gradients = numbers::<f32>(24, model.layout.len(), 1000.0);
    model.set_gradients(&gradients)?;
    let options = StepOptions { gradient_factor: 0.001, max_norm: 3.0, ..Default::default() };
    model.step(&mut optimizer, options)?;
    let norm = norm_of(&model.layout, &gradients) * f64::from(0.001_f32);
    check(optimizer.norm()?, norm, 2f64.powi(-22), 0.0);
    let factor = f64::from(0.001_f32) * 3.0 / norm;
    let formula = Formula { options: AdamWOptions::default(), rate: f64::from(RATE), step: 2, factor };
    formula.check(model.layout.ranges(), &gradients, [&before, &model.snapshot()?]);
    Ok(())
}

#[test]
fn the_same_bits_each_time() -> Result<(), ModelError> {
    let run = |seed| -> Result<_, ModelError> {
        let device = Device::simulator().seed(seed);
        let (mut model, mut optimizer) = begun(&device)?;
        model.step(&mut optimizer, StepOptions { max_norm: 1.0, ..Default::default() })?;
        Ok((model.snapshot()?.bits(), optimizer.norm()?.to_bits(), model.sums.to_vec()?))
    };
    let first = run(1)?;
    assert!(run(2)? == first && run(3)? == first);
    Ok(())
}

/// A graph counts steps by itself, and takes the learning rate of each from a table.
#[test]
fn a_graph_of_a_step() -> Result<(), ModelError> {
    let device = Device::simulator();
    let mut model = Model::<bf16, bf16>::new(&device, true)?;
    let mut optimizer = AdamW::new(&device, AdamWOptions::default(), 0.0)?;
    let rates = [0.5, 0.25, 0.125];
    let table = device.tensor(&rates, [3])?;
    let step = device.prepare(|on| {
        let options = StepOptions { rates: Some(table.view()), ..Default::default() };
        model.step_on(on, &mut optimizer, options)
    });
    let step = step.map_err(|error: ModelError| error)?;
    for count in 1..=5 {
        let gradients = numbers::<bf16>(30 + count as u64, model.layout.len(), 1.0);
        model.set_gradients(&gradients)?;
        let before = model.snapshot()?;
        step.launch(&device)?;
        let rate = f64::from(rates[(count - 1).min(2)]);
        let formula = Formula { options: AdamWOptions::default(), rate, step: count as i32, factor: 1.0 };
        formula.check(model.layout.ranges(), &gradients, [&before, &model.snapshot()?]);
        assert_eq!(optimizer.steps()?, count as u32);
    }
    Ok(())
}

#[test]
fn learning_rates_and_steps_of_an_earlier_run() -> Result<(), ModelError> {
    let device = Device::simulator();
    let mut model = Model::<f32, f32>::new(&device, false)?;
    let mut optimizer = AdamW::resume(&device, AdamWOptions::default(), 7.0, 41)?;
    optimizer.set_learning_rate(&device, 0.125)?;
    let gradients = numbers::<f32>(25, model.layout.len(), 1.0);
    model.set_gradients(&gradients)?;
    let before = model.snapshot()?;
    model.step(&mut optimizer, StepOptions::default())?;
    let formula = Formula { options: AdamWOptions::default(), rate: 0.125, step: 42, factor: 1.0 };
    formula.check(model.layout.ranges(), &gradients, [&before, &model.snapshot()?]);
    assert_eq!(optimizer.steps()?, 42);
    Ok(())
}

/// Tensors of different types and shapes, in one step: each has a layout, and all have one norm.
#[test]
fn tensors_of_their_own() -> Result<(), ModelError> {
    let device = Device::simulator();
    let layouts = [
        ParameterLayout::new(&device, &[Parameter::new(30 * 11)])?,
        ParameterLayout::new(&device, &[Parameter::new(20_000)])?,
    ];
    let of_matrix = numbers::<bf16>(40, 330, 1.0);
    let of_vector = numbers::<f32>(41, 20_000, 1.0);
    let (matrix, vector) = (device.tensor(&of_matrix, [30, 11])?, device.tensor(&of_vector, [20_000])?);
    let counts = layouts.each_ref().map(ParameterLayout::sums);
    assert_eq!(counts, [1, 2]);
    let mut sums = device.zeros::<f64, 1>([3])?;
    let ranges = [0..1, 1..3];
    sum_squares(&device, &layouts[0], &matrix, sums.view_mut().slice([ranges[0].clone()])?)?;
    sum_squares(&device, &layouts[1], &vector, sums.view_mut().slice([ranges[1].clone()])?)?;
    let mut optimizer = AdamW::new(&device, AdamWOptions::default(), RATE)?;
    let options = StepOptions { squares: Some(sums.view()), max_norm: 1.0, ..Default::default() };
    optimizer.begin_step(&device, options)?;
    let squares = of_matrix.iter().map(|x| x.value()).chain(of_vector.iter().map(|x| x.value()));
    check(optimizer.norm()?, squares.map(|x| x * x).sum::<f64>().sqrt(), 2f64.powi(-22), 0.0);
    let mut parameters = device.zeros::<bf16, 2>([30, 11])?;
    let (mut firsts, mut seconds) = (device.zeros([30, 11])?, device.zeros([30, 11])?);
    let weights = Weights {
        parameters: parameters.view_mut(),
        masters: None,
        firsts: firsts.view_mut(),
        seconds: seconds.view_mut(),
    };
    optimizer.update(&device, &layouts[0], weights, &matrix)?;
    // The first step goes by the rate, against the sign of the gradient.
    for (found, gradient) in parameters.to_vec()?.into_iter().zip(of_matrix) {
        let wanted = -f64::from(RATE) * gradient.value().signum();
        check(found, wanted, 1e-2, 0.0);
    }
    Ok(())
}

#[test]
fn layouts() -> Result<(), ModelError> {
    let device = Device::simulator();
    let layout = ParameterLayout::new(&device, &parameters())?;
    let starts = layout.ranges().iter().map(|range| range.start).collect::<Vec<_>>();
    assert_eq!(starts, [0, 64, 128, 192, 192 + 32768, 192 + 32768]);
    assert_eq!((layout.len(), layout.sums()), (192 + 32768 + 16384 + 1027, 7));
    let none = ParameterLayout::new(&device, &[Parameter::new(0)])?;
    assert!(none.is_empty());
    assert!(none.ranges().iter().all(std::ops::Range::is_empty));
    let empty = device.zeros::<f32, 1>([0])?;
    sum_squares(&device, &none, &empty, &mut device.zeros([0])?)?;
    Ok(())
}

#[test]
fn errors() -> Result<(), ModelError> {
    let device = Device::simulator();
    let code = |result: Result<(), ModelError>| result.expect_err("an error").code();
    let layout = |parameter| ParameterLayout::new(&device, &[parameter]).map(|_| ());
    assert_eq!(code(layout(Parameter::new(1 << 38))), "TMA0577");
    assert_eq!(code(layout(Parameter::new(usize::MAX))), "TMA0577");
    for number in [-1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(code(layout(Parameter { weight_decay: number, ..Parameter::new(1) })), "TMA0578");
        assert_eq!(code(layout(Parameter { rate_factor: number, ..Parameter::new(1) })), "TMA0578");
        assert_eq!(code(AdamW::new(&device, AdamWOptions::default(), number).map(|_| ())), "TMA0578");
        let options = [
            AdamWOptions { beta1: number, ..Default::default() },
            AdamWOptions { beta2: number, ..Default::default() },
            AdamWOptions { epsilon: number, ..Default::default() },
        ];
        for options in options {
            assert_eq!(code(AdamW::new(&device, options, RATE).map(|_| ())), "TMA0578");
        }
    }
    let of_one = AdamWOptions { beta2: 1.0, ..Default::default() };
    assert_eq!(code(AdamW::new(&device, of_one, RATE).map(|_| ())), "TMA0578");

    let (mut model, mut optimizer) = begun(&device)?;
    assert_eq!(code(optimizer.set_learning_rate(&device, -1.0)), "TMA0578");
    let no_rates = device.zeros::<f32, 1>([0])?;
    for options in [
        StepOptions { max_norm: 0.0, ..Default::default() },
        StepOptions { max_norm: f32::NAN, ..Default::default() },
        StepOptions { gradient_factor: 0.0, ..Default::default() },
        StepOptions { gradient_factor: f32::INFINITY, ..Default::default() },
        StepOptions { rates: Some(no_rates.view()), ..Default::default() },
    ] {
        assert_eq!(code(optimizer.begin_step(&device, options)), "TMA0578", "{options:?}");
    }
    assert_eq!(optimizer.steps()?, 1, "nothing was queued");
    let short = device.zeros::<f32, 1>([model.layout.len() - 1])?;
    assert_eq!(code(sum_squares(&device, &model.layout, &short, &mut model.sums)), "TMA0575");
    let mut few = device.zeros([model.layout.sums() - 1])?;
    assert_eq!(code(sum_squares(&device, &model.layout, &model.gradients, &mut few)), "TMA0575");
    let beside = 1..model.layout.len() + 1;
    let longer = device.zeros::<f32, 1>([beside.end])?;
    let longer = longer.view().slice([beside])?;
    assert_eq!(code(sum_squares(&device, &model.layout, longer, &mut model.sums)), "TMA0531");
    let mut short_moments = device.zeros::<f32, 1>([model.layout.len() - 1])?;
    let weights = Weights {
        parameters: model.parameters.view_mut(),
        masters: None,
        firsts: model.firsts.view_mut(),
        seconds: short_moments.view_mut(),
    };
    assert_eq!(code(optimizer.update(&device, &model.layout, weights, &model.gradients)), "TMA0575");
    Ok(())
}
