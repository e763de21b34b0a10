import { defineErrors } from '../../keys/basics/index.ts';

/** Error codes of people who sign in. */
export const errors = defineErrors({
  NOT_FOR_PEOPLE: {
    graphql: true,
    meaning: 'The key stands for a person who signs in: they have no secret, and are granted what their groups are.',
    causes: ['a person is to be rotated, replaced, declared, or given other grants'],
    remedy:
      'Change [`people`](console.md#people-without-a-key) in `svc-api.yaml`, or the groups of that person; or disable them.',
  },
});
