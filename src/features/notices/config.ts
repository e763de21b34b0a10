import { count, list, map, optional, required, text, textWith } from '../../config/schema.ts';
import { filePath, section } from '../../config/section.ts';
import { formatList, printable, suggestion, withoutUndefined } from '../../keys/basics/index.ts';
import { DEFAULT_NOTICES, invalidWebhook, MAX_REFUSED_OFTEN, NOTICE_TYPES, type NoticeType } from './notice.ts';

export const notices = section({
  description: 'A webhook for events of keys, signed as in Standard Webhooks.',
  otherwise: 'none',
  page: 'notices.md',
  schema: (context) =>
    map({
      url: required(textWith(invalidWebhook, { pattern: '^https?://' }), 'Its address: https, or http on loopback.'),
      channel: optional(
        textWith((given) => (given === '' ? 'The field "channel" is empty.' : undefined)),
        'The channel that delivers notices. Plugins can have others.',
        { otherwise: 'webhook' },
      ),
      secretFile: optional(filePath(context), 'File with the signing secret, relative to the folder of this file.', {
        otherwise: 'SVC_API_NOTICES_SECRET',
      }),
      events: optional(
        list(
          text<NoticeType>(
            (given) => {
              const value = NOTICE_TYPES.find((type) => type === given);
              const message = `"${printable(given)}" is not an event. ${suggestion(given, NOTICE_TYPES)}`;
              return value ? { value } : { refusal: `${message}The events are ${formatList(NOTICE_TYPES)}.` };
            },
            { enum: NOTICE_TYPES },
          ),
          'The field "events" is empty. Leave it out for all events, or leave out "notices".',
        ),
        'Events to send.',
        { otherwise: 'all' },
      ),
      refusedOften: optional(
        count(MAX_REFUSED_OFTEN),
        'Refused requests of a key within an hour that count as often.',
        {
          otherwise: String(DEFAULT_NOTICES.refusedOften),
        },
      ),
    }),
  into: (notices) => ({ notices: { secretFile: undefined, ...DEFAULT_NOTICES, ...withoutUndefined(notices) } }),
});
