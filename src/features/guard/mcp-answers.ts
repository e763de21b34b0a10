import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { isRecord } from '../../keys/basics/index.ts';
import type { PermissionSet } from '../../keys/permissions/index.ts';
import type { McpRules } from './mcp-rules.ts';
import { exactNumber, type Message, SESSION } from './mcp.ts';

/** Maximum size of a filtered answer or event, in bytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Maximum size for answers that only might start a task: these are short, and longer ones pass. */
const MAX_NOTED_BYTES = 64 * 1024;

/** Fields of answers that list parts of a server, with the field that identifies a part. */
const LISTS = [
  ['tools', 'tools', 'name'],
  ['prompts', 'prompts', 'name'],
  ['resources', 'resources', 'uri'],
  ['resources', 'resourceTemplates', 'uriTemplate'],
] as const;

/** Methods whose results are such lists. */
const LISTING: ReadonlySet<unknown> = new Set([
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'tools/list',
]);

/** Options for filtering an answer. */
interface LookOptions {
  readonly rules: McpRules;
  readonly access: () => PermissionSet;
  /** Is called with a session that an answer begins. */
  readonly beginsSession: (id: string) => void;
  /** Is called with a task that a call of a tool begins. */
  readonly beginsTask: (id: string, tool: string) => void;
}

/**
 * Filters lists in the body of an answer to what the key is allowed to use. An event stream can also continue another
 * request.
 * @param messages those of the request, none of a GET
 * @throws Error if the body cannot be filtered
 */
export function withoutForbidden(
  answer: IncomingMessage,
  messages: readonly Message[],
  { rules, access, beginsSession, beginsTask }: LookOptions,
): Readable {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity', [SESSION]: session } = answer.headers;
  if (typeof session === 'string' && messages.length > 0) beginsSession(session);
  const isStream = /^text\/event-stream[ \t]*(?:;|$)/i.test(type);
  const isJson = /^application\/json[ \t]*(?:;|$)/i.test(type);
  const lists = isStream || (isJson && messages.some(({ method }) => LISTING.has(method)));
  const hides = lists && !(messages.length > 0 && rules.allowsAll(access()));
  const calls = messages.filter(({ method }) => method === 'tools/call');
  const mayBegin = calls.length > 0 && (isStream || isJson);
  if (!hides && !mayBegin) return answer;
  const isPlain = encoding.trim().toLowerCase() === 'identity';
  const isUtf8 = !isJson || !/charset(?!="?utf-?8)/i.test(type);
  // An unnoted task is refused later, so the answer need not be broken off.
  if (!hides && !(isPlain && isUtf8)) return answer;
  if (!isPlain) throw new Error('The upstream compressed an answer that must be filtered.');
  if (!isUtf8) throw new Error('The upstream sent an answer that must be filtered, but is not UTF-8.');
  const change = (text: string) => {
    if (mayBegin) noteTasks(text, calls, beginsTask);
    return hides ? changeMessages(text, rules, access()) : text;
  };
  const most = hides ? MAX_ANSWER_BYTES : MAX_NOTED_BYTES;
  const looking = isStream ? new EventFilter(change, most, hides) : new WholeFilter(change, most, hides);
  answer.once('error', () => looking.destroy());
  return answer.pipe(looking);
}

/** Finds the tasks that the answers to calls begin (revisions 2025-11-25 and 2026-07-28). */
function noteTasks(text: string, calls: readonly Message[], beginsTask: LookOptions['beginsTask']): void {
  if (text.length > MAX_NOTED_BYTES || !text.includes('"taskId"')) return;
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch {
    return;
  }
  for (const message of Array.isArray(value) ? (value as unknown[]) : [value]) {
    const result = isRecord(message) ? message['result'] : undefined;
    if (!isRecord(result)) continue;
    const { resultType, task } = result;
    const taskId = resultType === 'task' ? result['taskId'] : isRecord(task) ? task['taskId'] : undefined;
    const call = calls.find(({ id }) => JSON.stringify(id) === JSON.stringify((message as Message)['id']));
    const tool = isRecord(call?.['params']) ? call['params']['name'] : undefined;
    if (typeof taskId === 'string' && typeof tool === 'string') beginsTask(taskId, tool);
  }
}

/**
 * Removes forbidden items from messages. A message without lists stays unchanged byte by byte.
 * @throws SyntaxError for text that is not JSON but could still be read as a list
 */
function changeMessages(text: string, rules: McpRules, access: PermissionSet): string {
  if (!LISTS.some(([, field]) => text.includes(`"${field}"`))) return text;
  const value = JSON.parse(text.replace(/^\uFEFF/, ''), exactNumber as never) as unknown;
  let isChanged = false;
  for (const message of Array.isArray(value) ? (value as unknown[]) : [value]) {
    const result = isRecord(message) ? message['result'] : undefined;
    if (!isRecord(result)) continue;
    for (const [kind, field, id] of LISTS) {
      const list = result[field];
      if (!Array.isArray(list)) continue;
      const kept = (list as unknown[]).filter(
        (item) => isRecord(item) && typeof item[id] === 'string' && rules.allows({ kind, name: item[id] }, access),
      );
      if (kept.length < list.length) [result[field], isChanged] = [kept, true];
    }
  }
  return isChanged ? JSON.stringify(value) : text;
}

type Done = (error?: Error | null, data?: Buffer) => void;

function trying(done: Done, change: () => Buffer | undefined): void {
  let data;
  try {
    data = change();
  } catch (error) {
    return done(error as Error);
  }
  return done(null, data);
}

function tooLarge(): Error {
  return new Error(`The upstream sent more than ${MAX_ANSWER_BYTES} bytes that must be filtered at once.`);
}

/** Changes text in a body. */
abstract class TextFilter extends Transform {
  protected readonly change: (text: string) => string;
  protected readonly most: number;
  protected readonly isNeeded: boolean;

  /**
   * @param most bytes that are changed at once
   * @param isNeeded whether more of them break off the body; they pass unchanged otherwise
   */
  constructor(change: (text: string) => string, most: number, isNeeded: boolean) {
    super();
    this.change = change;
    this.most = most;
    this.isNeeded = isNeeded;
  }
}

/** Changes a body as a whole. */
class WholeFilter extends TextFilter {
  #chunks: Buffer[] | undefined = [];
  #size = 0;

  override _transform(chunk: Buffer, _encoding: string, done: Done): void {
    if (!this.#chunks) return done(null, chunk);
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size <= this.most) return done(null);
    if (this.isNeeded) return done(tooLarge());
    const passed = Buffer.concat(this.#chunks);
    this.#chunks = undefined;
    return done(null, passed);
  }

  override _flush(done: Done): void {
    trying(done, () => {
      const bytes = Buffer.concat(this.#chunks ?? []);
      const text = bytes.toString();
      const changed = this.change(text);
      return changed === text ? bytes : Buffer.from(changed);
    });
  }
}

/** Between two lines of an event stream. */
const LINE_END = /\r\n|\n|\r/;

/** Changes the data of the events of a stream, one after the other (HTML, "Server-sent events"). */
class EventFilter extends TextFilter {
  /** The part of an event that has arrived. */
  #pieces: Buffer[] = [];
  #size = 0;
  #isAtLineStart = true;
  #isAfterReturn = false;

  override _transform(chunk: Buffer, _encoding: string, done: Done): void {
    trying(done, () => {
      let from = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        if (!this.#endsEvent(chunk[at]!)) continue;
        const bytes = Buffer.concat([...this.#pieces, chunk.subarray(from, at + 1)]);
        const isPassing = this.#size > this.most;
        this.#pieces = [];
        this.#size = 0;
        from = at + 1;
        this.push(isPassing ? bytes : this.#changeEvent(bytes));
      }
      const rest = chunk.subarray(from);
      this.#pieces.push(rest);
      this.#size += rest.length;
      if (this.#size <= this.most) return undefined;
      if (this.isNeeded) throw tooLarge();
      return Buffer.concat(this.#pieces.splice(0));
    });
  }

  override _flush(done: Done): void {
    // Clients ignore an incomplete event, except for its retry time.
    trying(done, () => this.#changeEvent(Buffer.concat(this.#pieces)));
  }

  /** Checks whether a byte ends an empty line. A line feed after a carriage return belongs to it. */
  #endsEvent(byte: number): boolean {
    const isReturn = byte === 0x0d;
    if (!isReturn && byte !== 0x0a) {
      this.#isAtLineStart = this.#isAfterReturn = false;
      return false;
    }
    const isSecond = !isReturn && this.#isAfterReturn;
    this.#isAfterReturn = isReturn;
    if (isSecond) return false;
    const wasAtLineStart = this.#isAtLineStart;
    this.#isAtLineStart = true;
    return wasAtLineStart;
  }

  #changeEvent(bytes: Buffer): Buffer {
    // Only the beginning of a stream.
    const lines = bytes
      .toString()
      .replace(/^\uFEFF/, '')
      .split(LINE_END);
    const isData = (line: string) => line === 'data' || line.startsWith('data:');
    const data = lines.filter(isData).map((line) => line.slice('data:'.length).replace(/^ /, ''));
    const text = data.join('\n');
    const changed = data.length === 0 ? text : this.change(text);
    if (changed === text) return bytes;
    const others = lines.filter((line) => line !== '' && !isData(line));
    // A final carriage return may be the first half of a line break.
    const end = bytes.at(-1) === 0x0d ? '\r' : '\n';
    return Buffer.from(`${[...others, `data: ${changed}`].join('\n')}\n${end}`);
  }
}
