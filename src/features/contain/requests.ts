import { change, issued, plannedIn } from '../../remote/requests.ts';
import { around, list, mapped, mutation, object, of, text, yesOrNo } from '../../remote/shape.ts';

const contained = object({
  apiKey: around({ id: of('keyId', text), name: text }),
  exists: yesOrNo,
  issued,
  changes: mapped(list(change), (changes) => changes.map(plannedIn)),
  requests: list(object({ id: of('requestId', text), client: of('clientName', text), keyName: text })),
});

/** The requests to servers. */
export const REQUESTS = { containKey: mutation('containKey', { input: 'ContainKeyInput!' }, contained) };
