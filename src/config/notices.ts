import { dirname, resolve } from 'node:path';
import { type DocumentReader, isRecord } from '../keys/document.ts';
import { suggestion } from '../keys/nearest.ts';
import { NOTICE_TYPES, type NoticeType } from '../keys/notices/notice.ts';
import { DEFAULT_NOTICES, invalidWebhook, MAX_REFUSED_OFTEN, type NoticeSettings } from '../keys/notices/settings.ts';
import { listOf, printable } from '../keys/text.ts';
import { isCount } from './config.ts';

export const NOTICES_FIELDS = ['url', 'secretFile', 'events', 'refusedOften'] as const;

/** Reads who is told of what. The file of the secret is given from the folder of this file. */
export function readNotices(reader: DocumentReader, value: unknown, file: string): NoticeSettings | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) {
    reader.report(['notices'], `The field "notices" must be a map with fields of ${listOf(NOTICES_FIELDS)}.`);
    return undefined;
  }
  const fields = reader.knownFields(value, ['notices'], NOTICES_FIELDS);
  const { url: givenUrl, secretFile, events, refusedOften = DEFAULT_NOTICES.refusedOften } = fields;
  if (givenUrl === undefined) reader.missing(['notices'], 'url');
  const url = givenUrl === undefined ? undefined : reader.text(givenUrl, ['notices', 'url']);
  const problem = url === undefined ? undefined : invalidWebhook(url);
  if (problem !== undefined) reader.report(['notices', 'url'], problem);
  if (!isCount(refusedOften, MAX_REFUSED_OFTEN))
    reader.report(
      ['notices', 'refusedOften'],
      `The field "refusedOften" must be a whole number from 1 to ${MAX_REFUSED_OFTEN}.`,
    );
  return {
    url: url ?? '',
    secretFile: secretFile === undefined ? undefined : readPath(reader, secretFile, file),
    events: events === undefined ? DEFAULT_NOTICES.events : readEvents(reader, events),
    refusedOften: isCount(refusedOften, MAX_REFUSED_OFTEN) ? refusedOften : DEFAULT_NOTICES.refusedOften,
  };
}

function readPath(reader: DocumentReader, value: unknown, file: string): string | undefined {
  const path = ['notices', 'secretFile'];
  const text = reader.text(value, path);
  if (text === '' || text?.includes('\0')) reader.report(path, 'The field "secretFile" must be the path of a file.');
  return text === undefined ? undefined : resolve(dirname(file), text);
}

function readEvents(reader: DocumentReader, value: unknown): NoticeType[] {
  const path = ['notices', 'events'];
  const events = reader.parsedList(value, path, ([text = '']) => {
    const type = NOTICE_TYPES.find((each) => each === text);
    if (type) return { values: [type], issues: [] };
    const message = `"${printable(text)}" is not an event. ${suggestion(text, NOTICE_TYPES)}`;
    return { values: [], issues: [{ message: `${message}The events are ${listOf(NOTICE_TYPES)}.` }] };
  });
  if (Array.isArray(value) && value.length === 0)
    reader.report(path, 'The field "events" is empty. Leave it out for all events, or leave out "notices".');
  return events;
}
