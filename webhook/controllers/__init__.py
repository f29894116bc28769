"""What runs beside the reviews: it keeps the status of TenantQuotas up to date."""
