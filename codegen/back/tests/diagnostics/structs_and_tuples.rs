#[tma_module]
mod shapes {
    use tma_runtime::prelude::*;

    #[derive(Clone, Copy)]
    struct Point {
        row: u32,
        column: u32,
    }

    #[derive(Clone, Copy)]
    struct Pair(u32, f32);

    #[derive(Clone, Copy)]
    struct Generic<T> {
        value: T,
    }

    #[derive(Clone, Copy)]
    struct View {
        data: Global<u32>,
        first: u32,
    }

    struct Host {
        value: u32,
    }

    #[tma_device]
    impl Point {
        fn new(row: u32) -> Self {
            Self { row, column: 0 }
        }

        fn advance(&mut self) {
            self.row += 1;
        }
    }

    #[tma_device]
    fn move_by(point: &mut Point, by: (u32, u32)) {
        point.row += by.0;
    }

    #[tma_kernel(threads = 32)]
    fn literals(out: Global<u32>, n: u32) {
        let a = Point { row: n };
        let b = Point { row: n, column: 1, depth: 2 };
        let c = Point { row: n, row: 2, column: 1.0 };
        let d = Pair(n);
        let e = Pair { 0: n, 1: 1.0 };
        let f = Generic { value: n };
        let g = Host { value: n };
        let h = Point { row: n, ..e };
        let i = u32 { value: 1 };
        let j = Point;
        let k = [Point::new(1), Point::new(2)][n as usize];
        let l: [(u32, u32); 2] = [(n, n); 2];
    }

    #[tma_kernel(threads = 32)]
    fn uses(out: Global<u32>, n: u32) {
        let p = Point::new(n);
        let t = (n, 1.0);
        out.set(p.depth, t.2);
        out.set(p, t);
        out.set(p.area(), p.new());
        out.set(Point::area(1), Point::new(1, 2).row);
        p.row = 1;
        p.advance();
        let mut q = p;
        q = t;
        q.row = t;
        q.row.x = 1;
        q.advance(1);
        move_by(&mut q, n);
        move_by(q, (1, 2));
        move_by(&mut p, (1, 2));
        move_by(&mut q, (1, 2.0));
        if p == q {
            out.set(0, -p);
        }
        Point::new(1).row = 2;
        printf!("%u", p);
    }

    #[tma_kernel(threads = 32)]
    fn patterns(out: Global<u32>, n: u32) {
        let (a, b, c) = (n, 1);
        let (d, e) = n;
        let [f, g] = [n, n, n];
        let [h] = n;
        let Point { row } = Point::new(n);
        let Point { row: i, depth, .. } = Point::new(n);
        let Pair(j, k) = Point::new(n);
        let Pair(l) = Pair(n, 1.0);
        let ref m = n;
        let (o, p) = if n > 1 { (1, 2) } else { (1, 2.0) };
        match (n, 1) {
            _ => {}
        }
        let mut q = (n, 2);
        (q.0, out) = (1, 2);
        (q, _) = (1, 2);
        (q.0, q.1, _) = (1, 2);
    }

    #[tma_kernel(threads = 32)]
    fn handles(out: Global<u32>, other: Global<u32>, point: Point) {
        let mut view = View { data: out, first: 0 };
        view.data = other;
        view = View { data: other, first: 1 };
        let chosen = if thread_idx().x > 3 { view } else { View { data: other, ..view } };
        chosen.data.set(0, 1);
    }
}
