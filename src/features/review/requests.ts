import { mutation, yesOrNo } from '../../remote/shape.ts';

/** The request to servers. */
export const REQUESTS = { attestReview: mutation('attestReview', { input: 'AttestReviewInput!' }, yesOrNo) };
