import { type Notice, noticeOf } from './notice.ts';

/**
 * The notice by which somebody tries a webhook: of no key, and no repetition of another one.
 * @param test.id a random one
 * @param test.at milliseconds since 1970
 * @param test.by the user of the machine who tries it
 */
export function testNotice({ id, at, by }: { id: string; at: number; by: string }): Notice {
  return noticeOf('test', { event: [id], at, data: { actor: { kind: 'CLI', id: null, name: by } } });
}
