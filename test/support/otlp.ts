import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A field of a Protocol Buffers message: a number or bytes (a text or a message). */
type Field = bigint | Buffer;
type Message = Map<number, Field[]>;

/** A span, as received. */
export interface ReceivedSpan {
  name: string;
  kind: number;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  /** In nanoseconds since 1970. */
  start: bigint;
  end: bigint;
  status: number;
  attributes: Record<string, string | number | boolean>;
  resource: Record<string, string | number | boolean>;
}

/** A receiver of OTLP over HTTP (protobuf). It keeps the spans. */
export async function startOtlpReceiver() {
  const spans: ReceivedSpan[] = [];
  const requests: { url: string | undefined; type: string | undefined }[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    requests.push({ url: incoming.url, type: incoming.headers['content-type'] });
    spans.push(...spansIn(Buffer.concat(chunks)));
    outgoing.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, requests, stop };
}

/** The spans of an ExportTraceServiceRequest (opentelemetry-proto 1.x). */
function spansIn(bytes: Buffer): ReceivedSpan[] {
  return messagesAt(read(bytes), 1).flatMap((resourceSpans) => {
    const resource = attributesAt(messagesAt(resourceSpans, 1)[0]!, 1);
    const scopes = messagesAt(resourceSpans, 2);
    return scopes.flatMap((scope) => messagesAt(scope, 2).map((span) => ({ ...spanOf(span), resource })));
  });
}

function spanOf(span: Message): Omit<ReceivedSpan, 'resource'> {
  const hex = (field: number) => (span.get(field)?.[0] as Buffer | undefined)?.toString('hex') ?? '';
  const fixed = (field: number) => (span.get(field)![0] as Buffer).readBigUInt64LE();
  const [status] = messagesAt(span, 15);
  return {
    name: String(span.get(5)![0]),
    kind: Number(span.get(6)?.[0] ?? 0),
    traceId: hex(1),
    spanId: hex(2),
    parentSpanId: hex(4),
    start: fixed(7),
    end: fixed(8),
    status: Number(status?.get(3)?.[0] ?? 0),
    attributes: attributesAt(span, 9),
  };
}

function attributesAt(message: Message, field: number): Record<string, string | number | boolean> {
  const entries = messagesAt(message, field).map((pair) => {
    const [value] = messagesAt(pair, 2);
    const [text, flag, number] = [1, 2, 3].map((kind) => value!.get(kind)?.[0]);
    return [
      String(pair.get(1)![0]),
      text === undefined ? (flag === undefined ? Number(number) : flag === 1n) : String(text),
    ];
  });
  return Object.fromEntries(entries) as Record<string, string | number | boolean>;
}

function messagesAt(message: Message, field: number): Message[] {
  return (message.get(field) ?? []).map((bytes) => read(bytes as Buffer));
}

/** Reads the fields of a message of Protocol Buffers. */
function read(bytes: Buffer): Message {
  const message: Message = new Map();
  let position = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(bytes[position]!);
      position += 1;
      value |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return value;
    }
  };
  const take = (length: number) => bytes.subarray(position, (position += length));
  while (position < bytes.length) {
    const tag = varint();
    const [field, wire] = [Number(tag >> 3n), Number(tag & 7n)];
    const value = wire === 0 ? varint() : take(wire === 1 ? 8 : wire === 5 ? 4 : Number(varint()));
    message.set(field, [...(message.get(field) ?? []), value]);
  }
  return message;
}
