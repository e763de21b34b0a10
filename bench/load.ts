import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { NUMBER, TOKEN } from './placeholders.ts';

/** The load to generate, passed as JSON on stdin. */
export interface LoadOptions {
  port: number;
  connections: number;
  /** The request, with placeholders TOKEN and NUMBER. */
  request: string;
  /** The keys, which all connections use in turn, and the index of the first. */
  tokens: readonly string[];
  from: number;
  /** The expected statuses. */
  statuses: readonly number[];
  /** Durations before and during the measurement, in seconds. */
  warmUp: number;
  seconds: number;
}

/** The result, printed as JSON. */
export interface LoadReport {
  /** Responses with an expected status: per second in the measurement, and in total with the warm-up. */
  rate: number;
  answers: number;
  /** Responses with another status, and broken connections. */
  wrong: number;
  /** The 50th and 99th percentile of the response time, in milliseconds. */
  p50: number;
  p99: number;
  /** The fraction of its core that this program used, from 0 to 1: close to 1, it is the bottleneck. */
  busy: number;
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n');
/** An upper bound for the head of a response. */
const MAX_HEAD_BYTES = 2048;

const options = JSON.parse(readFileSync(0, 'utf8')) as LoadOptions;
const expected = options.statuses.map((status) => Buffer.from(`HTTP/1.1 ${status}`));
const requests = options.tokens.map((token) => Buffer.from(options.request.replace(TOKEN, token), 'latin1'));
/** All keys have the same length, so the positions are the same in all requests. */
const numbersAt = positionsOf(requests[0]!, NUMBER);
let nextRequest = options.from;
// Random, so that parallel programs use different numbers.
let nextNumber = 10 ** 9 + Math.floor(Math.random() * 10 ** 9);
let answers = 0;
let before = 0;
let wrong = 0;
let times: number[] = [];

/**
 * A closed loop on raw sockets: each connection sends its next request when the response has arrived. To be cheaper
 * than the cheapest server, it prepares requests in advance, and reads only the status and length of responses.
 */
function open(): void {
  const buffer = Buffer.alloc(65_536);
  let sentAt = 0;
  let isOk = false;
  /** The remaining bytes of the response; Infinity while unknown. */
  let missing = 0;
  const send = () => {
    sentAt = performance.now();
    socket.write(takeRequest());
  };
  const read = (size: number) => {
    if (missing === 0) {
      isOk = expected.some((start) => buffer.compare(start, 0, start.length, 0, start.length) === 0);
      missing = lengthOf(buffer.toString('latin1', 0, Math.min(size, MAX_HEAD_BYTES)));
    }
    missing -= size;
    if (missing === Infinity && buffer.subarray(size - LAST_CHUNK.length, size).equals(LAST_CHUNK)) missing = 0;
    if (missing > 0) return;
    missing = 0;
    if (isOk) answers += 1;
    else wrong += 1;
    // A sample suffices for percentiles, and is cheap.
    if (answers % 16 === 0) times.push(performance.now() - sentAt);
    send();
  };
  const socket = connect({
    port: options.port,
    host: '127.0.0.1',
    noDelay: true,
    onread: { buffer, callback: (size) => (read(size), true) },
  });
  socket.once('connect', send);
  socket.once('error', () => (wrong += 1));
  socket.once('close', () => (wrong += 1));
}

function takeRequest(): Buffer {
  const request = requests[nextRequest % requests.length]!;
  nextRequest += 1;
  if (numbersAt.length === 0) return request;
  nextNumber += 1;
  for (const position of numbersAt) writeNumber(request, position, nextNumber);
  return request;
}

function writeNumber(request: Buffer, position: number, number: number): void {
  let rest = number;
  for (let index = position + NUMBER.length - 1; index >= position; index -= 1) {
    request[index] = 48 + (rest % 10);
    rest = Math.floor(rest / 10);
  }
}

function positionsOf(request: Buffer, text: string): number[] {
  const positions: number[] = [];
  for (let at = request.indexOf(text); at >= 0; at = request.indexOf(text, at + text.length)) positions.push(at);
  return positions;
}

/** The length of a response from its head; Infinity if it is chunked. */
function lengthOf(text: string): number {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) throw new Error('A head came in pieces.');
  const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
  return length === undefined ? Infinity : end + 4 + Number(length);
}

function percentile(fraction: number): number {
  return times[Math.floor(times.length * fraction)] ?? Number.NaN;
}

for (let index = 0; index < options.connections; index += 1) open();
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
  }, options.seconds * 1000);
}, options.warmUp * 1000);
