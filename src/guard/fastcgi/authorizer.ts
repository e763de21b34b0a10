import type { Socket } from 'node:net';
import { REPLY_HEADERS } from '../../http/replies.ts';
import { REQUEST_ID } from '../../http/request-id.ts';
import type { Verdict } from '../forward-auth/forward-auth.ts';
import { type Parameters, readParameters } from './parameters.ts';
import { type FastCgiRecord, record, RECORD, RecordReader, streamRecords } from './records.ts';

/** Decides about the request that a web server's parameters describe. */
export type Decide = (parameters: Parameters) => Promise<Decided>;

/** A verdict, and the id of the request that it is on. */
export interface Decided {
  readonly verdict: Verdict;
  readonly requestId: string;
}

/** The role of a request that asks whether another one may pass (FastCGI 1.0, section 6.3). */
const AUTHORIZER = 2;
const KEEP_CONNECTION = 1;
/** How a request has ended (section 5.5). */
const PROTOCOL_STATUS = { REQUEST_COMPLETE: 0, UNKNOWN_ROLE: 3 } as const;
/** More than web servers take for the head of a request. */
const MAX_PARAMETER_BYTES = 128 * 1024;

/** A request that has begun. */
interface Asking {
  readonly id: number;
  readonly keepsConnection: boolean;
  readonly content: Buffer[];
  bytes: number;
}

/** Answers a web server that asks on a connection, one request after another, until the connection ends. */
export async function answerWebServer(socket: Socket, decide: Decide): Promise<void> {
  const reader = new RecordReader();
  let asking: Asking | undefined;
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      for (const record of reader.read(chunk)) asking = await take(record, asking, { socket, decide });
    }
  } catch {
    // It is not FastCGI, or the connection has failed.
    socket.destroy();
  }
}

/** Takes the next record. @returns the request that is not complete yet @throws RangeError if it is out of place */
async function take(
  { type, requestId, content }: FastCgiRecord,
  asking: Asking | undefined,
  { socket, decide }: { socket: Socket; decide: Decide },
): Promise<Asking | undefined> {
  if (type === RECORD.BEGIN_REQUEST && !asking) {
    const begun = {
      id: requestId,
      keepsConnection: (content.readUInt8(2) & KEEP_CONNECTION) !== 0,
      content: [],
      bytes: 0,
    };
    if (content.readUInt16BE(0) === AUTHORIZER) return begun;
    return end(socket, begun, '', PROTOCOL_STATUS.UNKNOWN_ROLE);
  }
  if (!asking || type !== RECORD.PARAMS || asking.id !== requestId) throw new RangeError('This record was not due.');
  asking.bytes += content.length;
  if (asking.bytes > MAX_PARAMETER_BYTES) throw new RangeError('The parameters are too large.');
  asking.content.push(content);
  if (content.length > 0) return asking;
  return end(socket, asking, textOf(await decide(readParameters(Buffer.concat(asking.content)))));
}

/** Resolves once the answer is out: a web server that does not read it is not asked for more. */
async function end(
  socket: Socket,
  { id, keepsConnection }: Asking,
  text: string,
  status: number = PROTOCOL_STATUS.REQUEST_COMPLETE,
): Promise<undefined> {
  const ended = Buffer.alloc(8);
  ended.writeUInt8(status, 4);
  const answer = [streamRecords(RECORD.STDOUT, id, Buffer.from(text)), record(RECORD.END_REQUEST, id, ended)];
  await new Promise<void>((resolve, reject) => {
    socket.write(Buffer.concat(answer), (error) => (error ? reject(error) : resolve()));
  });
  if (!keepsConnection) socket.end();
}

/** A verdict as CGI writes it: what it sets of the web server's variables, or the answer for the client. */
function textOf({ verdict, requestId }: Decided): string {
  if ('identity' in verdict) {
    const variables = Object.entries({ ...verdict.identity, [REQUEST_ID]: requestId }).map(
      ([name, value]) => `Variable-${name.slice('X-'.length).toUpperCase().replaceAll('-', '_')}: ${value}`,
    );
    return ['Status: 200', ...variables, '', ''].join('\r\n');
  }
  const { status, type, text, headers } = verdict.refusal;
  const lines = Object.entries({ 'Content-Type': type, ...REPLY_HEADERS, ...headers, [REQUEST_ID]: requestId });
  return [`Status: ${status}`, ...lines.map(([name, value]) => `${name}: ${value}`), '', text].join('\r\n');
}
