import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import { canonicalName } from './identity-headers.ts';
import { goesOn, type Holder } from './mcp-holders.ts';
import { MAX_PARTS, type McpRules, type Part } from './mcp-rules.ts';
import { isEncoded, pairsOf } from './passed-headers.ts';
import { errorReply, headerValues, parseJson, readBody, type Reply, RequestRefused } from '../http/index.ts';
import { type Charge, ONCE, type Principal } from '../keys/authorization/index.ts';
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
/** The same for what only may begin a task: such answers are short, and longer ones pass. */
const MAX_NOTED_BYTES = 64 * 1024;

type Message = Readonly<Record<string, unknown>>;

/** A task that an earlier call of a tool has begun, by its id. */
interface Task {
  readonly kind: 'tasks';
  readonly name: string;
}

/**
 * The needs of a message: parts of the server and tasks, everything, something that no key gets, or nothing beyond the
 * connection itself.
 */
type Wanted = readonly (Part | Task)[] | 'everything' | 'nothing' | Invalid;

/** Why a message names nothing. */
interface Invalid {
  readonly invalid: string;
  readonly kind?: (Part | Task)['kind'];
}

/** Methods that anybody may call who may connect: they name no part, and what they list is looked through. */
const FOR_ALL: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'ping',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'server/discover',
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
      const { resourceSubscriptions = [], taskIds = [] } = isRecord(fields['notifications'])
        ? fields['notifications']
        : {};
      const resources = partsOf('resources', listOf(resourceSubscriptions));
      const tasks = partsOf('tasks', listOf(taskIds));
      return 'invalid' in tasks ? tasks : 'invalid' in resources ? resources : [...resources, ...tasks];
    }
    case 'tasks/cancel':
    case 'tasks/get':
    case 'tasks/result':
    case 'tasks/update':
      return partsOf('tasks', [fields['taskId']]);
    default:
      // A list of tasks shows those of all keys.
      return method.startsWith('tasks/') ? 'nothing' : 'everything';
  }
}

/** The tasks that messages name. */
export function tasksIn(messages: readonly Message[]): string[] {
  const wanted = messages.flatMap((message) => {
    const each = 'method' in message ? wantedBy(message) : [];
    return typeof each === 'object' && !('invalid' in each) ? each : [];
  });
  return [...new Set(wanted.flatMap(({ kind, name }) => (kind === 'tasks' ? [name] : [])))].slice(0, MAX_PARTS);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [undefined];
}

function partsOf<Kind extends (Part | Task)['kind']>(
  kind: Kind,
  names: readonly unknown[],
): readonly { kind: Kind; name: string }[] | Invalid {
  const texts = names.filter((name) => typeof name === 'string');
  return texts.length === names.length
    ? texts.map((name) => ({ kind, name }))
    : { kind, invalid: `The name of one of the ${kind} is not a string.` };
}

/** The messages of a request, as they are judged and passed on. */
export interface McpMessages {
  readonly messages: readonly Message[];
  /** Their bytes, as they arrived: no server can read them in another way. */
  readonly body: Buffer;
}

/** The codes of what is refused (JSON-RPC 2.0, section 5.1; MCP, revision 2026-07-28). */
const [PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS] = [-32_700, -32_600, -32_602];
const [SESSION_NOT_FOUND, FORBIDDEN, HEADER_MISMATCH] = [-32_001, -32_003, -32_020];

/** JSON in UTF-8: servers read other encodings by what they say of themselves, and would see other messages. */
const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset=(?:utf-?8|"utf-?8")[ \t]*)?$/i;

/** The refusal of a body that cannot be judged. */
export class MessagesRefused extends RequestRefused {
  override readonly status: 400 | 415;
  readonly #code: number;

  constructor(status: MessagesRefused['status'], code: number, message: string) {
    super('BAD_REQUEST', message);
    this.status = status;
    this.#code = code;
  }

  get reply(): Reply {
    const { status, code, message } = this;
    return withError({ ...errorReply(code, message), status }, this.#code, message);
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
  'jsonrpc id method params name uri taskId ref type notifications resourceSubscriptions taskIds'.split(' '),
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

/** Decodes a header value (non-ASCII text is base64); undefined if servers could read it in two ways. */
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

/** The subject of a decision, with the facts about it. */
interface AskedMessages extends Pick<McpMessages, 'messages'> {
  readonly rules: McpRules;
  /** The keys that began the named tasks. */
  readonly tasks: ReadonlyMap<string, Holder>;
}

/**
 * Decides about messages: all of them may be passed on, or none.
 * @param challenge the reply to a key that lacks permissions, of which the headers say so
 * @returns the permissions by which they may, the tools that they call, and what they count as: each that asks for
 *   something for itself; or why they may not
 */
export function judgeMessages(
  { rules, messages, tasks }: AskedMessages,
  principal: Principal,
  challenge: (missing: readonly Permission[]) => Reply,
): RefusedMessages | AllowedMessages {
  const { access } = principal;
  const used = new Set<Permission>();
  const tools = new Set<string>();
  const charges: Charge[] = [];
  const asked = messages
    .filter((message) => 'method' in message)
    .map((message) => ({ message, wanted: wantedBy(message) }));
  const tooMuch = rules.tooMuch(
    asked.flatMap(({ wanted }) => (typeof wanted === 'object' && !('invalid' in wanted) ? wanted : [])),
  );
  if (tooMuch !== undefined) return refusedAsInvalid(messages, tooMuch, 'too many parts');
  const maySkip = rules.allowsAll(access);
  for (const { message, wanted } of asked) {
    const method = typeof message['method'] === 'string' ? printable(message['method'], 100) : 'A message';
    // A server says better what is wrong with one that is invalid.
    const isTheirs = typeof wanted === 'object' && 'invalid' in wanted && wanted.kind !== 'tasks';
    if (maySkip && (wanted === 'everything' || isTheirs)) {
      charges.push(ONCE);
      continue;
    }
    const refusedFor = (message: string, detail: string, missing: readonly Permission[] = []) =>
      refused(messages, { reply: challenge(missing), code: FORBIDDEN, message, missing, detail });
    if (wanted === 'everything') return refusedFor(`${method} needs all tools, resources and prompts.`, method);
    if (wanted === 'nothing') return refusedFor(`${method} is not allowed to any key.`, method);
    if ('invalid' in wanted) return refusedAsInvalid(messages, wanted.invalid, method);
    const ofParts: Charge[] = [];
    for (const { kind, name } of wanted) {
      const holder = kind === 'tasks' ? tasks.get(name) : undefined;
      if (kind === 'tasks' && !(holder?.tool !== undefined && goesOn(holder, principal)))
        return refusedFor(`${method}: this key has begun no task with this id.`, `${method} of another task`);
      const part: Part = kind === 'tasks' ? { kind: 'tools', name: holder!.tool! } : { kind, name };
      const lacking = rules.lacking(part, access);
      if (lacking && 'used' in lacking) {
        for (const permission of lacking.used) used.add(permission);
        // The call has counted that began a task.
        if (kind === 'tasks') continue;
        ofParts.push(...lacking.charges);
        if (kind === 'tools') tools.add(printable(name, 100));
        continue;
      }
      const detail = `${method} ${printable(part.name, 100)}`;
      const missing = lacking?.missing ?? [];
      const text =
        missing.length > 0 ? `${detail} needs ${missing.join(', ')}.` : `${detail} is not allowed to any key.`;
      const tool = part.kind === 'tools' ? printable(part.name, 100) : undefined;
      return { ...refusedFor(text, detail, missing), tool };
    }
    if (ofParts.length > 0) charges.push(mostOfCharges(ofParts));
  }
  return { used, tools, charge: sumOfCharges(charges) };
}

/** The answer to messages that cannot be judged. */
function refusedAsInvalid(messages: readonly Message[], message: string, detail: string): RefusedMessages {
  const reply = errorReply('BAD_REQUEST', message);
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

/** The header by which a server knows a session. */
const SESSION = 'mcp-session-id';

/** The session that a request goes on with; undefined for none. @throws MessagesRefused for several */
export function sessionIn(rawHeaders: readonly string[]): string | undefined {
  const [session, ...others] = pairsOf(rawHeaders).flatMap(([name, value]) =>
    canonicalName(name) === SESSION ? [value] : [],
  );
  if (others.length > 0) throw new MessagesRefused(400, HEADER_MISMATCH, `The request has several headers ${SESSION}.`);
  return session;
}

/** The reply to a request that goes on with a session of another key, or of none: its client begins a new one. */
export function sessionNotFound(): Reply {
  const text = 'This key has begun no session with this id. Begin a new one.';
  return withError(errorReply('NOT_FOUND', text), SESSION_NOT_FOUND, text);
}

/** The reply to a request that is none of MCP. */
export function notMcp(message: string): Reply {
  return withError(errorReply('FORBIDDEN', message), INVALID_REQUEST, message);
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

/** How an answer is looked through. */
interface LookOptions {
  readonly rules: McpRules;
  readonly access: () => PermissionSet;
  /** Is called with a session that an answer begins. */
  readonly beginsSession: (id: string) => void;
  /** Is called with a task that a call of a tool begins. */
  readonly beginsTask: (id: string, tool: string) => void;
}

/**
 * The body of an answer, in which lists name only what a key may use. An event stream may also go on with what another
 * request has asked for.
 * @param messages those of the request, none of a GET
 * @throws Error if it cannot be looked through
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
  // A task of which nothing is known is refused later: no answer breaks off for it.
  if (!hides && !(isPlain && isUtf8)) return answer;
  if (!isPlain) throw new Error('The upstream has compressed an answer that must be looked through.');
  if (!isUtf8)
    throw new Error('The upstream has sent an answer that must be looked through in another encoding than UTF-8.');
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
  readonly #most: number;
  readonly #isNeeded: boolean;
  #chunks: Buffer[] | undefined = [];
  #size = 0;

  /** @param isNeeded whether one that is larger breaks off; it passes as it is otherwise */
  constructor(change: (text: string) => string, most: number, isNeeded: boolean) {
    super();
    this.#change = change;
    this.#most = most;
    this.#isNeeded = isNeeded;
  }

  override _transform(chunk: Buffer, _encoding: string, done: Done): void {
    if (!this.#chunks) return done(null, chunk);
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size <= this.#most) return done(null);
    if (this.#isNeeded) return done(tooLarge());
    const passed = Buffer.concat(this.#chunks);
    this.#chunks = undefined;
    return done(null, passed);
  }

  override _flush(done: Done): void {
    trying(done, () => {
      const bytes = Buffer.concat(this.#chunks ?? []);
      const text = bytes.toString();
      const changed = this.#change(text);
      return changed === text ? bytes : Buffer.from(changed);
    });
  }
}

/** Between two lines of an event stream. */
const LINE_END = /\r\n|\n|\r/;

/** Changes the data of the events of a stream, one after the other (HTML, "Server-sent events"). */
class EventFilter extends Transform {
  readonly #change: (text: string) => string;
  readonly #most: number;
  readonly #isNeeded: boolean;
  /** What has arrived of an event. */
  #pieces: Buffer[] = [];
  #size = 0;
  #isAtLineStart = true;
  #isAfterReturn = false;

  /** @param isNeeded whether the stream breaks off with an event that is larger; that passes as it is otherwise */
  constructor(change: (text: string) => string, most: number, isNeeded: boolean) {
    super();
    this.#change = change;
    this.#most = most;
    this.#isNeeded = isNeeded;
  }

  override _transform(chunk: Buffer, _encoding: string, done: Done): void {
    trying(done, () => {
      let from = 0;
      for (let at = 0; at < chunk.length; at += 1) {
        if (!this.#endsEvent(chunk[at]!)) continue;
        const bytes = Buffer.concat([...this.#pieces, chunk.subarray(from, at + 1)]);
        const isPassing = this.#size > this.#most;
        this.#pieces = [];
        this.#size = 0;
        from = at + 1;
        this.push(isPassing ? bytes : this.#changeEvent(bytes));
      }
      const rest = chunk.subarray(from);
      this.#pieces.push(rest);
      this.#size += rest.length;
      if (this.#size <= this.#most) return undefined;
      if (this.#isNeeded) throw tooLarge();
      return Buffer.concat(this.#pieces.splice(0));
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
