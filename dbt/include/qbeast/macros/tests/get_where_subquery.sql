{# A data test with `config: {sample: 0.1}` reads a tenth of the rows of the model that it tests, and
   of these only the rows that its `where` selects. #}
{% macro qbeast__get_where_subquery(relation) -%}
  {%- set where = config.get('where', '') -%}
  {%- set sample = adapter.qbeast_sample_of_test(config) -%}
  {%- if sample is none and not where -%}
    {% do return(relation) %}
  {%- endif -%}
  {%- set source = relation if sample is none else adapter.qbeast_sampled(relation, sample) -%}
  {%- set filtered -%}
    (select * from {{ source }} {%- if where %} where {{ where }}{% endif %}) dbt_subquery
  {%- endset -%}
  {% do return(filtered) %}
{%- endmacro %}
