import { connect } from 'node:net';

/** The load to generate, passed as JSON in the only argument. */
export interface LoadOptions {
  port: number;
  /** One request for each connection, as text. */
  requests: string[];
  /** How long to send before counting, and while counting, in seconds. */
  warmUp: number;
  seconds: number;
}

/** The result, printed as JSON. */
export interface LoadReport {
  /** Responses with status 200: per second while counting, and in total with the warm-up. */
  rate: number;
  answers: number;
  /** Responses with another status, and broken connections. */
  wrong: number;
  /** The 50th and 99th percentile of the response time, in milliseconds. */
  p50: number;
  p99: number;
  /** The fraction of its core that this program used, from 0 to 1: near 1, it is the bottleneck itself. */
  busy: number;
}

/**
 * A closed loop on raw sockets: each connection sends its next request when the response has arrived. It costs less
 * than the cheapest server: a response that is as long as the previous one is not parsed again.
 */
const { port, requests, warmUp, seconds } = JSON.parse(process.argv[2]!) as LoadOptions;
const OK = Buffer.from('HTTP/1.1 200');
let answers = 0;
let before = 0;
let wrong = 0;
let times: number[] = [];

function open(text: string): void {
  const request = Buffer.from(text, 'latin1');
  let usualLength = -1;
  let rest: Buffer = Buffer.alloc(0);
  let sentAt = 0;
  const send = () => {
    sentAt = performance.now();
    socket.write(request);
  };
  const count = (isOk: boolean) => {
    if (isOk) answers += 1;
    else wrong += 1;
    // A sample is enough for percentiles, and cheap.
    if (answers % 16 === 0) times.push(performance.now() - sentAt);
    send();
  };
  const buffer = Buffer.alloc(65_536);
  const read = (size: number) => {
    if (rest.length === 0 && size === usualLength) return count(buffer.compare(OK, 0, OK.length, 0, OK.length) === 0);
    rest = Buffer.concat([rest, buffer.subarray(0, size)]);
    const length = lengthOf(rest);
    if (length === undefined || rest.length < length) return undefined;
    usualLength = length;
    const isOk = rest.subarray(0, OK.length).equals(OK);
    rest = rest.subarray(length);
    return count(isOk);
  };
  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: { buffer, callback: (size) => (read(size), true) },
  });
  socket.once('connect', send);
  socket.once('error', () => (wrong += 1));
  socket.once('close', () => (wrong += 1));
}

/** The length of a response, head and body; undefined while it is unknown. */
function lengthOf(response: Buffer): number | undefined {
  const head = response.indexOf('\r\n\r\n');
  if (head < 0) return undefined;
  const length = /content-length: *(\d+)/i.exec(response.toString('latin1', 0, head))?.[1];
  if (length !== undefined) return head + 4 + Number(length);
  const end = response.indexOf('\r\n0\r\n\r\n', head + 2);
  return end < 0 ? undefined : end + 7;
}

function percentile(fraction: number): number {
  return times[Math.floor(times.length * fraction)] ?? Number.NaN;
}

for (const request of requests) open(request);
setTimeout(() => {
  [before, answers, times] = [answers, 0, []];
  const start = performance.now();
  const cpu = process.cpuUsage();
  setTimeout(() => {
    const elapsed = performance.now() - start;
    const { user, system } = process.cpuUsage(cpu);
    times.sort((one, other) => one - other);
    const report: LoadReport = {
      rate: (answers / elapsed) * 1000,
      answers: before + answers,
      wrong,
      p50: percentile(0.5),
      p99: percentile(0.99),
      busy: (user + system) / 1000 / elapsed,
    };
    process.stdout.write(JSON.stringify(report), () => process.exit());
  }, seconds * 1000);
}, warmUp * 1000);
