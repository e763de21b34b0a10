import { connectTo, readToEnd } from './client.ts';

/** A record (FastCGI 1.0, section 3.3), with padding as servers may have it. */
export function fastCgiRecord(type: number, content: Buffer, { id = 1, padding = 0, version = 1 } = {}): Buffer {
  const head = Buffer.from([version, type, id >> 8, id & 0xff, content.length >> 8, content.length & 0xff, padding, 0]);
  return Buffer.concat([head, content, Buffer.alloc(padding)]);
}

/** Name-value pairs, with lengths of one byte or four. */
export function fastCgiPairs(variables: Readonly<Record<string, string>>): Buffer {
  const lengthOf = (text: string) => {
    if (text.length < 0x80) return Buffer.from([text.length]);
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE((text.length | 0x80000000) >>> 0);
    return bytes;
  };
  return Buffer.concat(
    Object.entries(variables).flatMap(([name, value]) => [
      lengthOf(name),
      lengthOf(value),
      Buffer.from(name, 'latin1'),
      Buffer.from(value, 'latin1'),
    ]),
  );
}

/** A question of a web server, in records. */
export function fastCgiQuestion(
  variables: Readonly<Record<string, string>>,
  { role = 2, keep = false, id = 1 }: { role?: number; keep?: boolean; id?: number } = {},
): Buffer {
  return Buffer.concat([
    fastCgiRecord(1, Buffer.from([0, role, keep ? 1 : 0, 0, 0, 0, 0, 0]), { id }),
    fastCgiRecord(4, fastCgiPairs(variables), { id, padding: 5 }),
    fastCgiRecord(4, Buffer.alloc(0), { id }),
  ]);
}

/** Sends bytes to an authorizer, and reads its answer until it closes the connection. */
export async function askFastCgi(port: number, ...pieces: Buffer[]): Promise<string> {
  const socket = await connectTo(`http://127.0.0.1:${port}`, { noDelay: true });
  const answer = readToEnd(socket);
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
  return answer;
}

/** The texts of the answers in what an authorizer has sent, and the protocol status of each. */
export function fastCgiAnswers(text: string): { text: string; status: number }[] {
  const bytes = Buffer.from(text, 'latin1');
  const answers: { text: string; status: number }[] = [];
  let stdout = '';
  for (let at = 0; at < bytes.length;) {
    const end = at + 8 + bytes.readUInt16BE(at + 4);
    const content = bytes.subarray(at + 8, end);
    if (bytes[at + 1] === 6) stdout += content.toString('latin1');
    if (bytes[at + 1] === 3) {
      answers.push({ text: stdout, status: content[4]! });
      stdout = '';
    }
    at = end + bytes[at + 6]!;
  }
  return answers;
}
