import { Readable } from 'node:stream';
import { constants, createZstdCompress, zstdCompressSync } from 'node:zlib';
import type { Context, Handler, Hono, MiddlewareHandler } from 'hono';
import { isKeysError } from '../keys/basics/index.ts';
import { answerLines, EDGE_FORMS, MAX_FEED_LEASES, readEdgeReport } from '../keys/feed/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import { type Limited, readLeaseRequests } from '../limits/index.ts';
import type { BearerEnv } from './bearer-auth.ts';
import type { CheckParts } from './bearer-options.ts';
import { readJson } from './request-body.ts';
import { type ClientAddresses, HonoHead, requestIdIn } from './received.ts';
import {
  errorReply,
  jsonReply,
  type Reply,
  REPLY_HEADERS,
  type ReplyCode,
  RequestRefused,
  respond,
  unavailable,
} from './replies.ts';

interface FeedParts extends CheckParts {
  readonly keys: KeysService & Limited;
  readonly addresses: ClientAddresses;
  /** Whether whoever follows must have shown a certificate when it connected. */
  readonly needsCertificate: boolean;
}

/** What the answers are: a JSON value in each line, after a character that says what it is. */
const TYPE = 'application/x-ndjson';
/** Shorter answers are not worth compressing, in characters. */
const COMPRESSED_FROM = 16 * 1024;
/** Fast rather than small. */
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** The most that a report may have, in bytes. */
const MAX_REPORT_BYTES = 1024 * 1024;
const MAX_TEXT = 200;
const NO_CERTIFICATE =
  'The connection has no certificate that "tls.clientCa" of the server signs: give the edge one by --client-cert.';

/**
 * Adds what servers follow that answer without a store: the changes of keys, all keys, and where they report what they
 * have accepted. Asking for changes after a position says that all up to there have been taken.
 * @param auth lets those pass that have EDGE:READ_ANY
 */
export function addFeed(app: Hono<BearerEnv>, auth: MiddlewareHandler<BearerEnv>, parts: FeedParts): void {
  const answering =
    (method: 'GET' | 'POST', answer: (c: Context<BearerEnv>) => Promise<Reply | Response>): Handler<BearerEnv> =>
    async (c) => {
      try {
        if (c.req.method !== method)
          return respond(c, errorReply(405, 'METHOD_NOT_ALLOWED', `This address is for ${method}.`, { Allow: method }));
        if (parts.needsCertificate && !hasCertificate(c))
          return respond(c, errorReply(403, 'FORBIDDEN', NO_CERTIFICATE));
        const answered = await answer(c);
        const refused = await c.get('checkAgain')();
        return refused ?? (answered instanceof Response ? answered : respond(c, answered));
      } catch (error) {
        if (error instanceof RequestRefused) return respond(c, errorReply(error.status, error.code, error.message));
        if (isKeysError(error) && error.code === 'OPTION_INVALID')
          return respond(c, errorReply(400, 'BAD_REQUEST', error.message));
        parts.failures.add(error, requestIdIn(c));
        return respond(c, unavailable());
      }
    };
  const { edges, limiter } = parts.keys;
  app.all(
    '/feed',
    auth,
    answering('GET', (c) => poll(c, parts)),
  );
  app.all(
    '/feed/snapshot',
    auth,
    answering('GET', async (c) => {
      if (edges.isLoadingMany) return busy('Other servers are loading all keys. Try again in a moment.');
      const body = Readable.from(edges.snapshot(), { objectMode: false, highWaterMark: COMPRESSED_FROM });
      const headers = { 'Content-Type': TYPE, ...REPLY_HEADERS };
      if (!takesZstd(c)) return c.body(Readable.toWeb(body) as ReadableStream, 200, headers);
      const compressed = body.on('error', (error) => compressed.destroy(error)).pipe(createZstdCompress(ZSTD));
      compressed.on('close', () => body.destroy());
      const web = Readable.toWeb(compressed) as ReadableStream;
      return c.body(web, 200, { ...headers, 'Content-Encoding': 'zstd', Vary: 'Accept-Encoding' });
    }),
  );
  app.all(
    '/feed/activity',
    auth,
    answering('POST', async (c) => {
      await edges.report(readEdgeReport(await readJson(c, 'Activity is reported', MAX_REPORT_BYTES)));
      return c.body(null, 204, REPLY_HEADERS);
    }),
  );
  app.all(
    '/feed/leases',
    auth,
    answering('POST', async (c) => {
      const requests = readLeaseRequests(await readJson(c, 'Leases are asked for', MAX_REPORT_BYTES));
      if (requests.length > MAX_FEED_LEASES) throw badRequest(`There are more than ${MAX_FEED_LEASES} leases.`);
      return jsonReply((await limiter.leaseFor(requests)).map((grant) => grant ?? null));
    }),
  );
}

async function poll(c: Context<BearerEnv>, { keys, addresses }: FeedParts): Promise<Reply | Response> {
  const { apiKey } = c.get('principal');
  const asked = {
    id: textIn(c, 'edge', EDGE_FORMS.id),
    name: textIn(c, 'name', EDGE_FORMS.name),
    after: textIn(c, 'after', /^[\w.:~-]+$/),
    leaseMs: Number(textIn(c, 'lease', /^\d{1,6}$/)),
    holdMs: c.req.query('hold') === undefined ? undefined : Number(textIn(c, 'hold', /^\d{1,6}$/)),
    key: { id: apiKey.id, name: apiKey.name },
    address: addresses.of(new HonoHead(c)).address,
  };
  const { least, most } = EDGE_FORMS.leaseMs;
  if (asked.leaseMs < least || asked.leaseMs > most)
    throw badRequest(`"lease" is ${asked.leaseMs}. It is from ${least} to ${most} milliseconds.`);
  const answer = await keys.edges.poll(asked, c.req.raw.signal);
  if (answer === 'gone') return errorReply(410, 'FEED_GONE', 'This position is not known. Load /feed/snapshot.');
  if (answer === 'full') return busy('Too many servers follow this one. Use another one.');
  const text = answerLines(answer);
  const headers = { 'Content-Type': TYPE, ...REPLY_HEADERS };
  return text.length >= COMPRESSED_FROM && takesZstd(c)
    ? c.body(zstdCompressSync(text, ZSTD), 200, { ...headers, 'Content-Encoding': 'zstd', Vary: 'Accept-Encoding' })
    : c.body(text, 200, headers);
}

/** A parameter of the URL. @throws RequestRefused */
function textIn(c: Context, name: string, form: RegExp): string {
  const values = c.req.queries(name) ?? [];
  const [value = ''] = values;
  if (values.length === 1 && value.length <= MAX_TEXT && form.test(value)) return value;
  throw badRequest(`The URL must have exactly one "${name}", in its form.`);
}

function badRequest(message: string): RequestRefused {
  return new RequestRefused(400, 'BAD_REQUEST' satisfies ReplyCode, message);
}

function hasCertificate(c: Context): boolean {
  const { incoming } = (c.env ?? {}) as { incoming?: { socket: { authorized?: boolean } } };
  return incoming?.socket.authorized === true;
}

function busy(message: string): Reply {
  return errorReply(503, 'OVERLOADED', message, { 'Retry-After': '1' });
}

function takesZstd(c: Context): boolean {
  return /(?:^|,)\s*zstd\s*(?:,|$)/.test(c.req.header('accept-encoding') ?? '');
}
