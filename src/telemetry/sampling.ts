import { randomFillSync } from 'node:crypto';
import type { Log } from '../log.ts';
import type { Parent } from './trace-context.ts';

/** One more than any word of 32 bits. */
const ALL = 2 ** 32;
const POOL_WORDS = 1024;
const ROOTS: ReadonlySet<string> = new Set(['always_on', 'always_off', 'traceidratio']);

/**
 * Which requests are traced, as the samplers of OpenTelemetry's specification have it. That is decided before anything
 * is made for a request: its own samplers want the span's name, its attributes and a context.
 */
export class Sampling {
  /** Traces are taken where the words of their ids make less, together: as its sampler for Node counts. */
  readonly #bound: number;
  readonly #isParentBased: boolean;
  readonly #pool = new Uint32Array(POOL_WORDS);
  #drawn = POOL_WORDS;
  /** The id of the trace that was taken, and that begins now. */
  #traceId: string | undefined;

  constructor(env: NodeJS.ProcessEnv, log: Log) {
    const name = env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on';
    const root = name.replace(/^parentbased_/, '');
    const isKnown = ROOTS.has(root);
    if (!isKnown) log.warn({ sampler: name }, 'OTEL_TRACES_SAMPLER is not known: all requests are traced');
    this.#isParentBased = !isKnown || root !== name;
    const ratio = root === 'always_off' ? 0 : root === 'traceidratio' ? ratioIn(env, log) : 1;
    this.#bound = ratio === 1 ? ALL : Math.floor(ratio * (ALL - 1));
  }

  /** Whether a request is traced. @param parent undefined where it has no caller with a trace */
  takes(parent: Parent | undefined): boolean {
    if (parent && this.#isParentBased) return parent.isSampled;
    if (this.#bound === ALL) return true;
    if (this.#bound === 0) return false;
    if (parent) return foldTraceId(parent.traceId) < this.#bound;
    const [first, second, third, fourth] = [this.#draw(), this.#draw(), this.#draw(), this.#draw()];
    const isTaken = (first ^ second ^ third ^ fourth) >>> 0 < this.#bound;
    if (isTaken) this.#traceId = hex(first) + hex(second) + hex(third) + hex(fourth);
    return isTaken;
  }

  /** The id of a trace that begins: of the one that was taken, if that was by its id. */
  generateTraceId(): string {
    const taken = this.#traceId;
    this.#traceId = undefined;
    return taken ?? this.generateSpanId() + this.generateSpanId();
  }

  generateSpanId(): string {
    // An id may not be zero.
    return hex(this.#draw()) + hex(this.#draw() || 1);
  }

  #draw(): number {
    if (this.#drawn === POOL_WORDS) {
      randomFillSync(this.#pool);
      this.#drawn = 0;
    }
    this.#drawn += 1;
    return this.#pool[this.#drawn - 1]!;
  }
}

function ratioIn({ OTEL_TRACES_SAMPLER_ARG: text }: NodeJS.ProcessEnv, log: Log): number {
  const given = Number(text || 1);
  if (given >= 0 && given <= 1) return given;
  log.warn({ ratio: text }, 'OTEL_TRACES_SAMPLER_ARG is no number from 0 to 1: all requests are traced');
  return 1;
}

/** The words of a trace's id, each added to the others without a carry. */
function foldTraceId(traceId: string): number {
  let folded = 0;
  for (let at = 0; at < traceId.length; at += 8) folded ^= Number.parseInt(traceId.slice(at, at + 8), 16);
  return folded >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, '0');
}
