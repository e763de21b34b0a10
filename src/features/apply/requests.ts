import { change, name, secret } from '../../remote/requests.ts';
import { list, mutation, nullable, object, text, time, whole } from '../../remote/shape.ts';

const secrets = list(object({ key: secret, apiKey: name }));
const applied = object({
  changes: list(change),
  created: secrets,
  rotated: secrets,
  waiting: list(object({ name: text, previousEndsAt: nullable(time) })),
  unchanged: whole,
});

/** The requests to servers. */
export const REQUESTS = { applyApiKeys: mutation('applyApiKeys', { input: 'ApplyApiKeysInput!' }, applied) };
