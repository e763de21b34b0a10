import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { canonicalName } from './identity-headers.ts';
import type { McpRules, Part } from './mcp-rules.ts';
import { isEncoded, pairsOf } from './passed-headers.ts';
import { errorReply, headerValues, parseJson, readBody, type Reply, RequestRefused } from '../http/index.ts';
import { type Charge, ONCE } from '../keys/authorization/index.ts';
import { countFields, countJson, isRecord, printable, yieldToEventLoop } from '../keys/basics/index.ts';
import type { Permission, PermissionSet } from '../keys/permissions/index.ts';
import { mostOfCharges, sumOfCharges } from '../routes/index.ts';

/**
 * What is decided about the messages of the Model Context Protocol, by its revisions up to 2026-07-28: which parts of a
 * server a key may use. Messages are JSON-RPC 2.0 in the body of a POST, answers are JSON or an event stream.
 */

/** The most messages that a request may have. */
const MAX_MESSAGES = 100;
/** The most fields of objects that a body may have, and the most values: it takes its time to read each of them. */
const [MAX_FIELDS, MAX_VALUES] = [20_000, 100_000];
/** The most that one answer or event may have that is looked through, in bytes. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

type Message = Readonly<Record<string, unknown>>;

/** What a message asks for: parts of the server, everything, or nothing that is not for all who may connect. */
type Wanted = readonly Part[] | 'everything' | { readonly invalid: string };

/** Methods that anybody may call who may connect: they name no part, and what they list is looked through. */
const FOR_ALL: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'ping',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'server/discover',
  'tasks/cancel',
  'tasks/get',
  'tasks/result',
  'tools/list',
]);

/** What the parameters of a message name. */
function wantedBy({ method, params = {} }: Message): Wanted {
  if (typeof method !== 'string') return { invalid: 'The method of a message is not a string.' };
  if (FOR_ALL.has(method) || method.startsWith('notifications/')) return [];
  const fields = isRecord(params) ? params : {};
  switch (method) {
    case 'tools/call':
      return partsOf('tools', [fields['name']]);
    case 'prompts/get':
      return partsOf('prompts', [fields['name']]);
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return partsOf('resources', [fields['uri']]);
    case 'completion/complete': {
      const ref = isRecord(fields['ref']) ? fields['ref'] : {};
      return ref['type'] === 'ref/prompt' ? partsOf('prompts', [ref['name']]) : partsOf('resources', [ref['uri']]);
    }
    case 'subscriptions/listen': {
      const { resourceSubscriptions = [] } = isRecord(fields['notifications']) ? fields['notifications'] : {};
      return partsOf('resources', Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [undefined]);
    }
    default:
      return 'everything';
  }
}

function partsOf(kind: Part['kind'], names: readonly unknown[]): Wanted {
  const texts = names.filter((name) => typeof name === 'string');
  return texts.length === names.length
    ? texts.map((name) => ({ kind, name }))
    : { invalid: `The name of one of the ${kind} is not a string.` };
}

/** The messages of a request, as they are judged and passed on. */
export interface McpMessages {
  readonly messages: readonly Message[];
  /** Their bytes, as they arrived: no server can read them in another way. */
  readonly body: Buffer;
}

/** The codes of what is refused (JSON-RPC 2.0, section 5.1; MCP, revision 2026-07-28). */
const [PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS] = [-32_700, -32_600, -32_602];
const [FORBIDDEN, HEADER_MISMATCH] = [-32_003, -32_020];

/** JSON in UTF-8: servers read other encodings by what they say of themselves, and would see other messages. */
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset=(?:utf-?8|"utf-?8")[ \t]*)?$/i;

/** The refusal of a body that cannot be judged. */
export class MessagesRefused extends RequestRefused {
  readonly #code: number;

  constructor(status: RequestRefused['status'], code: number, message: string) {
    super(status, 'BAD_REQUEST', message);
    this.#code = code;
  }

  get reply(): Reply {
    return withError(errorReply(this.status, this.code, this.message), this.#code, this.message);
  }
}

/** A reply whose body is an error of JSON-RPC, to no request that could be told. */
function withError(reply: Reply, code: number, message: string): Reply {
  return { ...reply, text: JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }) };
}

/**
 * Reads the messages of a POST.
 * @throws MessagesRefused; RequestRefused for a body that is too large, or cut off
 */
export async function readMessages(incoming: IncomingMessage): Promise<McpMessages> {
  const { rawHeaders } = incoming;
  if (isEncoded(rawHeaders))
    throw new MessagesRefused(415, INVALID_REQUEST, 'The body is compressed, which is not allowed here.');
  const types = headerValues(rawHeaders, 'content-type');
  if (types.length !== 1 || !JSON_TYPE.test(types[0]!))
    throw new MessagesRefused(415, INVALID_REQUEST, 'The body must be application/json, in UTF-8.');
  const bytes = await readBody(incoming);
  const text = decode(bytes);
  const { fields, values } = countJson(text);
  if (fields > MAX_FIELDS || values > MAX_VALUES)
    throw new MessagesRefused(
      400,
      INVALID_REQUEST,
      `The body has more than ${MAX_FIELDS} fields or ${MAX_VALUES} values. Send less at a time.`,
    );
  const value = parse(text);
  // A body that is as large as it may be takes a while: others have their turns between.
  await yieldToEventLoop();
  const messages = Array.isArray(value) ? value : [value];
  if (messages.length === 0 || messages.length > MAX_MESSAGES || !messages.every(isMessage))
    throw new MessagesRefused(
      400,
      INVALID_REQUEST,
      `The body is not JSON-RPC 2.0, of at most ${MAX_MESSAGES} messages.`,
    );
  if (countFields(value) !== fields)
    throw new MessagesRefused(400, INVALID_REQUEST, 'A field of the body is there twice.');
  const alias = messages.map(findAlias).find((name) => name !== undefined);
  if (alias !== undefined)
    throw new MessagesRefused(400, INVALID_REQUEST, `The field "${printable(alias)}" is taken for another one.`);
  requireSameHeaders(rawHeaders, messages);
  await yieldToEventLoop();
  return { messages, body: Buffer.from(bytes) };
}

/** The fields by which messages are judged. */
const JUDGED: ReadonlySet<string> = new Set(
  'jsonrpc id method params name uri taskId ref type notifications resourceSubscriptions'.split(' '),
);
const JUDGED_WITHOUT_CASE: ReadonlySet<string> = new Set(Array.from(JUDGED, withoutCase));
/** A name that is longer is not taken for one of them: without its case, none is shorter. */
const MAX_JUDGED = Math.max(...Array.from(JUDGED, ({ length }) => length));

/** The same for names that some servers, such as those that use Go's `encoding/json`, take for one another. */
function withoutCase(name: string): string {
  return name.toLowerCase().toUpperCase();
}

/** A field of a message that is not one of those by which it is judged, but may be taken for one. */
function findAlias({ params, ...message }: Message): string | undefined {
  const fields = isRecord(params) ? params : {};
  const { ref, notifications } = fields;
  const objects = [message, fields, isRecord(ref) ? ref : {}, isRecord(notifications) ? notifications : {}];
  return objects
    .flatMap((object) => Object.keys(object))
    .find((name) => !JUDGED.has(name) && name.length <= MAX_JUDGED && JUDGED_WITHOUT_CASE.has(withoutCase(name)));
}

function parse(text: string): unknown {
  try {
    return parseJson(text, 'The body');
  } catch (error) {
    throw error instanceof RequestRefused ? new MessagesRefused(400, PARSE_ERROR, error.message) : error;
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MessagesRefused(400, PARSE_ERROR, 'The body is not valid UTF-8.');
  }
}

/** Keeps numbers as they are written, however many digits they have. */
function exactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' ? (JSON as unknown as RawJson).rawJSON(context!.source!) : value;
}

interface RawJson {
  rawJSON(text: string): unknown;
}

/** Whether a value is a request, a notification, or a client's answer to a request of the server. */
function isMessage(value: unknown): value is Message {
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return false;
  return 'method' in value || ('id' in value && ('result' in value || 'error' in value));
}

/** How the names of headers begin that repeat an argument of a tool (revision 2026-07-28). */
const PARAM = 'mcp-param-';
/** The most headers of MCP that a request may have: each is compared with all arguments. */
const MAX_HEADERS = 50;

/** Refuses headers that say something else than the message, by which a server could go (revision 2026-07-28). */
function requireSameHeaders(rawHeaders: readonly string[], messages: readonly Message[]): void {
  const said = new Map<string, string[]>();
  for (const [name, value] of pairsOf(rawHeaders)) {
    const header = canonicalName(name);
    if (header === 'mcp-method' || header === 'mcp-name' || header.startsWith(PARAM))
      said.set(header, [...(said.get(header) ?? []), value]);
  }
  if (said.size > MAX_HEADERS)
    throw new MessagesRefused(400, HEADER_MISMATCH, `The request has more than ${MAX_HEADERS} headers of MCP.`);
  const [first] = messages;
  const params = isRecord(first?.['params']) ? first['params'] : {};
  const method = first?.['method'];
  const [, family = ''] = /^(resources|tasks)\//.exec(String(method)) ?? [];
  const named = params[{ resources: 'uri', tasks: 'taskId' }[family] ?? 'name'];
  let given: readonly Argument[] | undefined;
  for (const [header, values] of said) {
    const [value, ...others] = values.map(decodeHeader);
    const isSame =
      header === 'mcp-method'
        ? value === method
        : header === 'mcp-name'
          ? value === named
          : method === 'tools/call' && isArgument(header, value, (given ??= argumentsIn(params['arguments'])));
    if (!isSame || value === undefined || others.length > 0 || messages.length > 1)
      throw new MessagesRefused(400, HEADER_MISMATCH, `The header ${header} says something else than the body.`);
  }
}

/** An argument of a tool that is a text, a number or a boolean, with its name in lower case and without signs. */
type Argument = readonly [name: string, value: string | number | boolean];

function argumentsIn(value: unknown, name = ''): Argument[] {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return [[name, value]];
  if (Array.isArray(value) || !isRecord(value)) return [];
  return Object.entries(value).flatMap(([field, each]) => argumentsIn(each, withoutSigns(field)));
}

/**
 * Whether a header says what an argument is. Which one it repeats, only the schema of the tool says: the one of its
 * name, where there is one, else any.
 */
function isArgument(header: string, value: string | undefined, given: readonly Argument[]): boolean {
  const name = withoutSigns(header.slice(PARAM.length));
  const named = given.filter(([each]) => each === name);
  return (named.length > 0 ? named : given).some(([, argument]) =>
    typeof argument === 'number'
      ? value !== undefined && /^-?\d+(?:\.\d+)?$/.test(value) && Number(value) === argument
      : value === String(argument),
  );
}

function withoutSigns(name: string): string {
  return name.toLowerCase().replaceAll(/[^\p{L}\d]/gu, '');
}

/** What a header says, in which text that is not ASCII stands in base64; undefined for what servers read in two ways. */
function decodeHeader(value: string): string | undefined {
  const base64 = /^=\?base64\?(.*)\?=$/i.exec(value)?.[1];
  if (base64 === undefined) return value;
  const text = Buffer.from(base64, 'base64').toString();
  return Buffer.from(text).toString('base64') === base64 ? text : undefined;
}

/** What a key may not do of what messages ask for. */
export interface RefusedMessages {
  readonly reply: Reply;
  readonly missing: readonly Permission[];
  /** What was asked for, for logs. */
  readonly detail: string;
  /** The tool that was called; undefined if none was. */
  readonly tool?: string | undefined;
}

/** What messages do that may be passed on. */
interface AllowedMessages {
  readonly used: ReadonlySet<Permission>;
  readonly tools: ReadonlySet<string>;
  readonly charge: Charge;
}

/**
 * Decides about messages: all of them may be passed on, or none.
 * @param challenge the reply to a key that lacks permissions, of which the headers say so
 * @returns the permissions by which they may, the tools that they call, and what they count as: each that asks for
 *   something for itself; or why they may not
 */
export function judgeMessages(
  rules: McpRules,
  messages: readonly Message[],
  access: PermissionSet,
  challenge: (missing: readonly Permission[]) => Reply,
): RefusedMessages | AllowedMessages {
  const used = new Set<Permission>();
  const tools = new Set<string>();
  const charges: Charge[] = [];
  const asked = messages
    .filter((message) => 'method' in message)
    .map((message) => ({ message, wanted: wantedBy(message) }));
  const tooMuch = rules.tooMuch(
    asked.flatMap(({ wanted }) => (Array.isArray(wanted) ? (wanted as readonly Part[]) : [])),
  );
  if (tooMuch !== undefined) return refusedAsInvalid(messages, tooMuch, 'too many parts');
  const maySkip = rules.allowsAll(access);
  for (const { message, wanted } of asked) {
    const method = typeof message['method'] === 'string' ? printable(message['method'], 100) : 'A message';
    // A server says better what is wrong with one that is invalid.
    if ((wanted === 'everything' || 'invalid' in wanted) && maySkip) {
      charges.push(ONCE);
      continue;
    }
    if (wanted === 'everything') {
      const text = `${method} needs all tools, resources and prompts.`;
      return refused(messages, { reply: challenge([]), code: FORBIDDEN, message: text, missing: [], detail: method });
    }
    if ('invalid' in wanted) return refusedAsInvalid(messages, wanted.invalid, method);
    const ofParts: Charge[] = [];
    for (const part of wanted) {
      const lacking = rules.lacking(part, access);
      if (lacking && 'used' in lacking) {
        for (const permission of lacking.used) used.add(permission);
        ofParts.push(...lacking.charges);
        if (part.kind === 'tools') tools.add(printable(part.name, 100));
        continue;
      }
      const detail = `${method} ${printable(part.name, 100)}`;
      const missing = lacking?.missing ?? [];
      const text =
        missing.length > 0 ? `${detail} needs ${missing.join(', ')}.` : `${detail} is not allowed to any key.`;
      const tool = part.kind === 'tools' ? printable(part.name, 100) : undefined;
      return {
        ...refused(messages, { reply: challenge(missing), code: FORBIDDEN, message: text, missing, detail }),
        tool,
      };
    }
    if (ofParts.length > 0) charges.push(mostOfCharges(ofParts));
  }
  return { used, tools, charge: sumOfCharges(charges) };
}

/** The answer to messages that cannot be judged. */
function refusedAsInvalid(messages: readonly Message[], message: string, detail: string): RefusedMessages {
  const reply = errorReply(400, 'BAD_REQUEST', message);
  return refused(messages, { reply, code: INVALID_PARAMS, message, missing: [], detail });
}

interface Refusing {
  readonly reply: Reply;
  readonly code: number;
  readonly message: string;
  readonly missing: readonly Permission[];
  readonly detail: string;
}

/** The answer to each request among messages of which one is refused. */
function refused(messages: readonly Message[], { reply, code, message, missing, detail }: Refusing): RefusedMessages {
  const data = missing.length > 0 ? { scope: missing.join(' ') } : undefined;
  const errors = messages
    .filter((each) => 'method' in each)
    .map(({ id = null }) => ({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }));
  const text = JSON.stringify(messages.length === 1 ? errors[0] : errors);
  return { reply: { ...reply, text }, missing, detail };
}

/** The reply to a request that is none of MCP. */
export function notMcp(message: string): Reply {
  return withError(errorReply(403, 'FORBIDDEN', message), INVALID_REQUEST, message);
}

/** Where answers list parts of a server, and by what these are known. */
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

/**
 * The body of an answer, in which lists name only what a key may use. An event stream may also go on with what another
 * request has asked for.
 * @param messages those of the request, none of a GET
 * @throws Error if it cannot be looked through
 */
export function withoutForbidden(
  answer: IncomingMessage,
  messages: readonly Message[],
  { rules, access }: { rules: McpRules; access: () => PermissionSet },
): Readable {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = answer.headers;
  const isStream = /^text\/event-stream[ \t]*(?:;|$)/i.test(type);
  const isJson = /^application\/json[ \t]*(?:;|$)/i.test(type);
  const lists = isStream || (isJson && messages.some(({ method }) => LISTING.has(method)));
  if (!lists || (messages.length > 0 && rules.allowsAll(access()))) return answer;
  if (encoding.trim().toLowerCase() !== 'identity')
    throw new Error('The upstream has compressed an answer that must be looked through.');
  if (isJson && /charset(?!="?utf-?8)/i.test(type))
    throw new Error('The upstream has sent an answer that must be looked through in another encoding than UTF-8.');
  const change = (text: string) => changeMessages(text, rules, access());
  const looking = isStream ? new EventFilter(change) : new WholeFilter(change);
  answer.once('error', () => looking.destroy());
  return answer.pipe(looking);
}

/**
 * A message, or several, without what may not be used. What lists nothing stays byte by byte as it was.
 * @throws SyntaxError for what is not JSON, and could be read as a list all the same
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
  return new Error(`The upstream has sent more than ${MAX_ANSWER_BYTES} bytes that must be looked through at once.`);
}

/** Changes a body as a whole. */
class WholeFilter extends Transform {
  readonly #change: (text: string) => string;
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(change: (text: string) => string) {
    super();
    this.#change = change;
  }

  override _transform(chunk: Buffer, _encoding: string, done: Done): void {
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    done(this.#size > MAX_ANSWER_BYTES ? tooLarge() : null);
  }

  override _flush(done: Done): void {
    trying(done, () => Buffer.from(this.#change(Buffer.concat(this.#chunks).toString())));
  }
}

/** Between two lines of an event stream. */
const LINE_END = /\r\n|\n|\r/;

/** Changes the data of the events of a stream, one after the other (HTML, "Server-sent events"). */
class EventFilter extends Transform {
  readonly #change: (text: string) => string;
  /** What has arrived of an event. */
  #pieces: Buffer[] = [];
  #size = 0;
  #isAtLineStart = true;
  #isAfterReturn = false;

  constructor(change: (text: string) => string) {
    super();
    this.#change = change;
  }

  override _transform(chunk: Buffer, _encoding: string, done: Done): void {
    trying(done, () => {
      let from = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        if (!this.#endsEvent(chunk[at]!)) continue;
        const bytes = Buffer.concat([...this.#pieces, chunk.subarray(from, at + 1)]);
        this.#pieces = [];
        this.#size = 0;
        from = at + 1;
        this.push(this.#changeEvent(bytes));
      }
      this.#pieces.push(chunk.subarray(from));
      this.#size += chunk.length - from;
      if (this.#size > MAX_ANSWER_BYTES) throw tooLarge();
      return undefined;
    });
  }

  override _flush(done: Done): void {
    // An event that is not ended counts for nothing, but may say for how long to wait before another try.
    trying(done, () => this.#changeEvent(Buffer.concat(this.#pieces)));
  }

  /** Whether a byte ends an empty line. A line feed behind a carriage return belongs to that. */
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
    // What begins a stream, and no more.
    const lines = bytes
      .toString()
      .replace(/^\uFEFF/, '')
      .split(LINE_END);
    const isData = (line: string) => line === 'data' || line.startsWith('data:');
    const data = lines.filter(isData).map((line) => line.slice('data:'.length).replace(/^ /, ''));
    const text = data.join('\n');
    const changed = data.length === 0 ? text : this.#change(text);
    if (changed === text) return bytes;
    const others = lines.filter((line) => line !== '' && !isData(line));
    // A carriage return at its end may be the first half of what ends it.
    const end = bytes.at(-1) === 0x0d ? '\r' : '\n';
    return Buffer.from(`${[...others, `data: ${changed}`].join('\n')}\n${end}`);
  }
}
