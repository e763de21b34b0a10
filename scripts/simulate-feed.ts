import { parseArgs } from 'node:util';

/**
 * Simulates edges in numbers that one machine cannot run: `npm run simulate`. Each input was measured on two cores, by
 * the commands in docs/scale.md. Random numbers come from a seed, so results are reproducible.
 */
const { values: given } = parseArgs({
  options: {
    edges: { type: 'string', default: '1000' },
    keys: { type: 'string', default: '10000000' },
    'changes-per-second': { type: 'string', default: '50' },
  },
});
const [edges, keys, changes] = [given.edges, given.keys, given['changes-per-second']].map(Number) as [
  number,
  number,
  number,
];

/** Measured. Times are milliseconds of CPU, sizes bytes. */
const MEASURED = {
  // `asksPerSecond` is how often an edge polls while nothing changes, with a lease of a second.
  http: { asksPerSecond: 2, askCpu: 0.18, askBytes: 331, changeBytes: 560 },
  nats: {
    asksPerSecond: 4,
    askCpu: 0.03,
    brokerCpu: 0.005,
    askBytes: 301,
    changeBytes: 625,
    bytesPerKey: 466,
    streamBytesPerKey: 394,
  },
  snapshot: { bytesPerKey: 81, originCpuPerKey: 0.0039, edgeCpuPerKey: 0.0049 },
  table: { memoryPerKey: 440 },
} as const;

/** Assumed. */
const ASSUMED = {
  /** The round trip: its median, and its spread (of the logarithm). */
  medianMs: 40,
  spread: 0.6,
  /** The share of lost packets, and the delay before they are sent again, in milliseconds. */
  loss: 0.005,
  againMs: 200,
  leaseMs: 1000,
  /** The bandwidth of the origin, or of the broker's hub: 10 Gbit/s. */
  bytesPerSecond: 1.25e9,
  /** How many edges load all keys from one server at the same time. */
  loading: 4,
};

/** Mulberry32: numbers from 0 to 1, the same for each seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const random = randomFrom(1);

/** How long a change and its confirmation take to and from an edge, in milliseconds. */
function wayMs(): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const lost = [0, 1].filter(() => random() < ASSUMED.loss).length;
  return ASSUMED.medianMs * Math.exp(ASSUMED.spread * normal) + lost * ASSUMED.againMs;
}

/** How long changes wait until all edges know them, with some edges frozen. */
function waits(frozen: number): { p50: number; p99: number; most: number } {
  const times = Array.from({ length: 2000 }, (_, change) => {
    // The lease of a frozen edge expires once.
    let slowest = frozen > 0 && change === 0 ? ASSUMED.leaseMs : 0;
    for (let edge = frozen; edge < edges; edge += 1) slowest = Math.max(slowest, Math.min(wayMs(), ASSUMED.leaseMs));
    return slowest;
  }).toSorted((one, other) => one - other);
  const at = (part: number) => Math.round(times[Math.min(Math.floor(times.length * part), times.length - 1)]!);
  return { p50: at(0.5), p99: at(0.99), most: at(1) };
}

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const units = (value: number, names: readonly string[], factor: number) => {
  const power = Math.min(Math.max(Math.floor(Math.log(value) / Math.log(factor)), 0), names.length - 1);
  return `${number.format(value / factor ** power)} ${names[power]}`;
};
const bytes = (value: number) => units(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB'], 1000);
const time = (seconds: number) =>
  seconds < 120
    ? `${number.format(seconds)} s`
    : seconds < 7200
      ? `${number.format(seconds / 60)} min`
      : `${number.format(seconds / 3600)} h`;

const { http, nats, snapshot, table } = MEASURED;
const [calm, frozen] = [waits(0), waits(1)];
const snapshotBytes = keys * snapshot.bytesPerKey;
/** All edges restart at the same time. */
const storm = (servers: number) => {
  const atOnce = ASSUMED.loading * servers;
  const perRound = Math.max(
    (keys * snapshot.originCpuPerKey * ASSUMED.loading) / 1000,
    (atOnce * snapshotBytes) / ASSUMED.bytesPerSecond,
    (keys * snapshot.edgeCpuPerKey) / 1000,
  );
  return Math.ceil(edges / atOnce) * perRound;
};
type Way = { asksPerSecond: number; askCpu: number; askBytes: number; changeBytes: number };
const each = ({ asksPerSecond, askCpu, askBytes, changeBytes }: Way) => ({
  calm: edges * asksPerSecond,
  messages: edges * asksPerSecond + edges * changes * 2,
  bytes: edges * asksPerSecond * askBytes + edges * changes * (changeBytes + askBytes),
  cpu: (edges * (asksPerSecond + changes) * askCpu) / 1000,
});
const rows: (readonly [string, string, string])[] = [
  ['messages a second', number.format(each(http).messages), number.format(each(nats).messages)],
  ['messages a second while nothing changes', number.format(each(http).calm), number.format(each(nats).calm)],
  ['bytes sent a second', bytes(each(http).bytes), bytes(each(nats).bytes)],
  ['cores of the origin', number.format(each(http).cpu), number.format(each(nats).cpu)],
  ['cores of the broker', '', number.format((edges * (nats.asksPerSecond + changes) * nats.brokerCpu) / 1000)],
  [
    'edges that one core of the origin can serve while nothing changes',
    number.format(1000 / (http.asksPerSecond * http.askCpu)),
    number.format(1000 / (nats.asksPerSecond * nats.askCpu)),
  ],
  ['time until a change has returned: p50, p99, longest', `${calm.p50}, ${calm.p99}, ${calm.most} ms`, 'the same'],
  ['the same while one edge is frozen', `${frozen.p50}, ${frozen.p99}, ${frozen.most} ms`, 'the same'],
  ['memory of an edge for its keys', bytes(keys * table.memoryPerKey), 'the same'],
  ['size of all keys, as they are sent', bytes(snapshotBytes), bytes(keys * nats.bytesPerKey)],
  [
    'time for all edges to load all keys again, from one server',
    time(storm(1)),
    time((edges * keys * nats.bytesPerKey) / ASSUMED.bytesPerSecond),
  ],
  [
    'the same, from ten servers or leaf nodes',
    time(storm(10)),
    time((edges * keys * nats.bytesPerKey) / ASSUMED.bytesPerSecond / 10),
  ],
];
console.log(
  `${number.format(edges)} edges, ${number.format(keys)} keys, ${number.format(changes)} changes a second:\n`,
);
console.log('| figure | HTTP | NATS |\n|---|---|---|');
for (const row of rows) console.log(`| ${row.join(' | ')} |`);
